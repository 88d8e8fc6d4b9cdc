// Package streams sends the events of a view to a client. The packages above it choose the view; a
// [Transport] chooses the encoding: server-sent events or AG-UI's binary format here, frames of a
// WebSocket in package sockets.
//
// [Streams.Pump] is the loop of every event stream. It ends when the view ends, the client is gone
// or too slow, the server drains, or the credentials expire. The package also counts the open
// streams of the node, which bounds its memory.
//
// A stream may end at any event without an error event. The client reconnects with its last cursor,
// and loses nothing.
package streams
