// Package remote makes runs of agents on other servers that speak AG-UI over HTTP and server-sent
// events, and yields their events in the form of AG-UI 1.x.
//
//	POST input ──► remote ──► SSE ──► normalize ──► verify ──► Event, Event, … or one *Error
//
// [Client.Run] is one request. It never repeats a request: the error says what the caller needs to
// decide about that. The package knows no engine, no definitions and no secrets.
//
// # Generations
//
// It accepts AG-UI 1.x, and the generation before it: streams whose RUN_STARTED declares no
// protocolVersion. THINKING_* events become REASONING_* events, and chunks become start, content and
// end events. Unknown material is removed. In a stream of the old generation, the IDs of the run may
// be missing, reasoning may still be open at RUN_FINISHED, a CUSTOM or RAW event may lack its value,
// and a malformed STATE_DELTA is dropped. Clients of that generation accept all of that. Each
// deviation is a warning of the next event.
//
// The request declares a version ([Auto], [Version1]) or none ([Version0]). What the remote speaks
// is in its RUN_STARTED. There is no probe: a run costs money. AG-UI has no answer for a version
// that a server does not know. Servers of the old generation ignore the member, as their schemas
// of version 0.0.59 do, or refuse the input with status 400 or 422 before they begin the run. Such
// an agent needs Version0.
//
// # Several runs in one response
//
// A response may replay earlier runs before the requested one (transports/http-sse). Their events
// have another [Event.RunID]. The iteration ends at the terminal event of the requested run. A
// remote that chooses its own run IDs is read to the end of its response.
//
// # Resuming
//
// AG-UI has no resumption. Some servers honor Last-Event-ID nevertheless. A call with
// [Call.LastEventID] accepts a stream that starts inside a run. It cannot continue a chunk without an
// ID, because the opener of its item is in the part that was received before, and it opens an item
// of chunks again. An agent that sends chunks must therefore not be resumed.
//
// # Identifiers
//
// Perdure uses IDs of its own ([NewID]) for the messages, tool calls and interrupts of a remote
// agent, and returns the remote's IDs to the remote ([OriginalID]). The remote's IDs cannot be kept:
// AG-UI requires IDs that are unique in their thread, but a thread of Perdure has several agents,
// and some servers number the messages of each run from 1. An own ID contains the agent, a digest of
// the run, and the remote's ID. So it is unique over the runs of a thread, and the remote's ID needs
// no table: it is a part of it. A remote's ID that is too long for that, or is no text of visible ASCII,
// is replaced by its digest; the remote then gets the digest as the ID of its item.
//
// A remote also names items of earlier runs: in snapshots, in results of old calls and in
// interrupts. The caller knows the own IDs of the items in the input of the run.
package remote
