// Package auth says who calls: a [Principal], and how a request proves that it is theirs.
//
//	request ──Authenticator──► Identity ──With──► context ──From──► whoever has to know
//
// Rules:
//   - Nothing is let in by default: an Authenticator answers with an identity or an error, and each error
//     is one of the five below.
//   - Credentials go no further than the Authenticator. No error has them in its text.
//   - Who sends is the TCP peer. What a request says about that (X-Forwarded-For) is never believed.
package auth
