// Package auditing records what clients do in the audit log (internal/audit).
//
// Each request, and each frame of a WebSocket, that is more than a read has a [Pending] entry in its
// context. Handlers add what they know with [Detail] and [About]. The entry is written before the
// first byte of the response: a client that has a response finds its action in the audit log.
//
//   - A 2xx is recorded as accepted. If it cannot be recorded, the client gets a 503 instead: the
//     action took effect, and the request can be repeated.
//   - A 401 for credentials that are not accepted, and a 403, are recorded as denied, also for reads.
//   - A 5xx is recorded as unknown.
//   - Other refusals change nothing, and are not recorded.
package auditing
