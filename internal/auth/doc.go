// Package auth identifies callers: a [Principal], and how a request proves that it is sent by that
// principal.
//
//	request ──Authenticator──► Identity ──With──► context ──From──► API handlers
//
// Rules:
//   - An Authenticator returns an identity or an error, and each error wraps one of the errors of this
//     package. So no request is accepted by default.
//   - Credentials stay in the Authenticator. No error contains them.
//   - The sender of a request is its TCP peer. Headers such as X-Forwarded-For are ignored.
package auth
