// Package oidc authenticates callers by the tokens of an OpenID provider: signed JWTs whose keys
// the provider publishes.
//
//	token ──signature, issuer, expiry──► verifier ──audience, claims──► Principal
//	                                        │ a key that is unknown
//	                                        ▼
//	                                     fetcher ──► the provider, at most every ten seconds
//
// The provider is needed at the start, and after it has changed its keys. While it is unavailable,
// tokens with known keys are accepted, and others fail with auth.ErrUnavailable.
//
// A Client of the same provider signs users of web pages in (package sessions).
package oidc
