// Package oidc knows callers by the tokens of an OpenID provider: signed JWTs whose keys the
// provider publishes.
//
//	token ──signature, issuer, expiry──► verifier ──audience, claims──► Principal
//	                                        │ keys, when one is new
//	                                        ▼
//	                                     fetcher ──► the provider, at most every ten seconds
//
// The provider is needed to begin, and for keys that it has changed. While it is away, tokens with
// keys that are known are accepted, and others are answered with auth.ErrUnavailable.
package oidc
