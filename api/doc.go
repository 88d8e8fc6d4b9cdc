// Package api serves the HTTP API of a node. It checks requests, starts the workflows of threads,
// sends them updates and signals, and shows the log to clients as AG-UI events.
//
//	POST runs ──► input ──► proposal in the log ──► start the workflow
//	                └────► view of the run ──frames──► SSE, WebSocket
//
// The package calls no model and no tool: workers do. A node keeps only caches and open connections
// in memory, so any API process can serve any run, and a client may change the process at any time.
//
// The rules:
//
//   - The API refuses invalid input before anything starts, with a problem that names the member.
//   - What an answer acknowledges is durable before the API sends the answer.
//   - 503 means that the outcome is unknown. The same request again is safe, with the exceptions in
//     docs/reference/errors.md.
//   - A disconnect of the client cancels nothing, unless the run's input has set
//     cancelOnDisconnect.
//   - Transports only carry events. What a run is, what a cursor means, and how a refusal reads do
//     not depend on the transport ([streams.Transport], [problem.Problem]).
//
// runs.go has the path of an input, top to bottom. Packages below this one serve agents, approvals,
// schedules, threads and sockets.
package api
