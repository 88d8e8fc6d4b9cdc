// Package httptool makes tools of HTTP requests that a file describes.
//
//	arguments ──► URL (path, query) ─┐
//	         └──► query or body ─────┼──► request ──► egress ──► answer ──► Result
//	${secret:NAME} ──► headers ──────┘                              └── secrets hidden
//
// The rules:
//
//   - An argument fills the place that it was given and no other: it cannot add a segment to the
//     path, a parameter to the query, or a header, and never touches the host.
//   - Arguments that the URL does not use are the query of GET, HEAD and DELETE, and else the body.
//   - Every request has an Idempotency-Key, the same in all attempts of a call. Nothing here
//     repeats a request: each has a connection of its own, because net/http would repeat one that has
//     such a key by itself if a connection that it uses again breaks.
//   - Where requests may go is for package egress to say.
//   - An answer of success is shown as far as it can be; what is too long is cut, and what nobody
//     could read is named. The tool has run, and a model that believed in a failure would run it again.
//   - An answer of failure is a failure, with what its text says. 429, 502, 503, 504 and a lost
//     connection are no answers: another attempt may get one.
package httptool
