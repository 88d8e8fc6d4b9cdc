// Package httptool makes tools from HTTP requests that a definition describes.
//
//	arguments ──► URL (path, query) ─┐
//	         └──► query or body ─────┼──► request ──► egress ──► response ──► Result
//	${secret:NAME} ──► headers ──────┤                              └── secrets hidden
//	run ──► assertion ──► header ────┘
//
// The rules:
//
//   - An argument fills only its own placeholder. It cannot add a segment to the path, a parameter
//     to the query, or a header, and never changes the host.
//   - Arguments that the URL does not use become the query of GET, HEAD and DELETE, and the body of
//     other methods.
//   - The Idempotency-Key header is the same in all attempts of a call. This package does not
//     repeat requests. Each request has its own connection, because net/http repeats a request with
//     this header if a reused connection breaks ([http.Transport]).
//   - Package egress decides which hosts a request may reach.
//   - A response with a 2xx status is a result. A body that is too long is truncated, and a body
//     that is not text is described. Neither is a failure, because a model would repeat a failed
//     call.
//   - A response with another status is a failure, with the beginning of its text. The statuses
//     429, 502, 503 and 504 and a lost connection mean that the call has no outcome: another
//     attempt can succeed.
package httptool
