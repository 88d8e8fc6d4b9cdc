// Package httptool makes tools whose calls are HTTP requests, which a definition describes.
//
//	arguments ──► URL (path, query) ─┐
//	         └──► query or body ─────┼──► request ──► egress ──► answer ──► Result
//	${secret:NAME} ──► headers ──────┘                              └── secrets hidden
//
// The rules:
//
//   - An argument fills only its own placeholder: it cannot add a segment to the path, a parameter to the query, or a header, and never
//     changes the host.
//   - Arguments that the URL does not use are the query of GET, HEAD and DELETE, and the body of other methods.
//   - Every request has an Idempotency-Key, the same in all attempts of a call. This package does not repeat requests. Each has its own
//     connection, because net/http repeats a request with such a key if a reused connection breaks.
//   - Package egress decides which hosts a request may reach.
//   - A successful answer is shown; one that is too long is cut, and one that is not text is described. It is never a failure, because a
//     model that is told of a failure would call the tool again.
//   - An unsuccessful answer is a failure, with its text. 429, 502, 503, 504 and a lost connection mean that the call has no outcome:
//     another attempt may get one.
package httptool
