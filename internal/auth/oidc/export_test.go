package oidc

// NewAt is New with a clock of the test's.
var NewAt = newTokens
