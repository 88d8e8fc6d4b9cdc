// Package sessions signs users of web pages in at the OpenID provider, and authenticates their
// requests by a cookie.
//
//	/auth/login ──state──► provider ──code──► /auth/callback ──► record and token
//
//	request ──cookie──► token (scs) ──session ID──► record ──► Principal
//	                                                  │ watch
//	                                                  ▼
//	                                                index ──► end of open streams
//
// The bucket <stream>_sessions has, for all API processes:
//
//	token.<SHA-256>    the ID of the session to which a token belongs. The token itself is only in
//	                   the browser's cookie. It is replaced at sign-in and at intervals
//	session.<ID>       the record: principal, tokens of the provider, times
//	logout.<SHA-256>   the ID of a logout token that was used
//
// Rules:
//   - A session exists as long as its record does. So one deletion ends it for all of its tokens and
//     API processes, and the watch of the records ends its open streams everywhere.
//   - Records change by compare-and-swap. So only one API process uses a refresh token, which many
//     providers accept only once.
//   - Values contain refresh tokens. If the log has a cipher, they are encrypted with a key of their
//     own. Otherwise, access to the bucket is access to the sessions.
//   - signedIn, signedOut and refused are the only places that report these events. The API
//     reports requests that Authenticate refuses, like those with other credentials.
package sessions
