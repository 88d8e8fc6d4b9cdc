// Package api serves the HTTP API. It checks requests, starts and addresses workflows, and shows
// the log. It knows no model and no tool, keeps nothing in memory that matters, and any node serves
// any run.
//
//	POST runs ──► input ──► proposal in the log ──► start the workflow
//	                 └────► view of the run ──frames──► SSE, WebSocket
//
// The rules:
//
//   - Invalid input is refused before anything starts, with a problem that names the member.
//   - What an answer acknowledges is durable before the answer is sent.
//   - 503 means unknown: sending the same again is safe.
//   - A client that disconnects cancels nothing, unless its input asks for that.
//   - Transports only carry events. What a run is, what a cursor means, and how a refusal reads do not depend on the transport
//     ([streams.Transport], [problem.Problem]).
//
// runs.go has the path of an input, top to bottom. Packages below this one serve agents, approvals,
// schedules, threads and sockets.
package api
