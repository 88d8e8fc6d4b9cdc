package oidc

// NewAt is New with a clock that the test supplies.
var NewAt = newTokens
