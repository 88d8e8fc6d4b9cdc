// Package api is the HTTP surface: it checks what comes in, starts and addresses workflows, and
// shows the log. It knows no model and no tool, keeps nothing in memory that matters, and any node
// serves any run.
//
//	POST runs ──► input ──► proposal in the log ──► start the workflow
//	                 └────► view of the run ──frames──► SSE, WebSocket
//
// Rules:
//   - Bad input is refused before anything is started, with a problem that points at the member.
//   - What a decision answers is durable before the answer goes out.
//   - 503 means unknown: sending the same again is safe.
//   - A client that goes away cancels nothing.
//   - A transport only carries: what a run is, what a cursor means and how a refusal reads does not
//     depend on it (transport, Problem).
package api
