// Package protobuf implements the binary encoding of AG-UI: framed events as Protocol Buffers
// messages.
//
//	┌────────────────────┬──────────────────────────────────────────┐
//	│ length, 4 bytes,   │ Event { oneof event { … } }              │
//	│ big-endian         │   each arm: BaseEvent and its own fields │
//	└────────────────────┴──────────────────────────────────────────┘
//
// The bytes are those of the reference implementation, @ag-ui/proto 1.0.0, with the members that
// protocol 1.1 added. Each message has one description, which the writer and the reader share
// (events.go, messages.go). The specification freezes its field numbers.
//
// The encoding loses three things that JSON preserves: members that the protocol does not define,
// the literals of numbers in open values (they become 64-bit floats), and the difference between an
// empty list and an absent one.
package protobuf
