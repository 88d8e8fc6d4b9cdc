// Package agui is the vocabulary of the AG-UI protocol: its 31 events, its
// request, its messages, and the rules that a stream of them must keep.
//
//	      Decode              Strip                Verifier            Reducer
//	JSON ────────► Event ──────────────► Event ──────────────► Event ──────────► messages,
//	     ◄────────        drops what we          checks order,          assembles  state
//	      Encode          do not know            expands chunks
//
// A consumer goes through it from left to right; one that meets producers from
// before 1.0 puts a ThinkingUpgrade behind Decode. A producer builds events as
// plain struct literals, asks its Guard, which is a Verifier with the rules for
// producers, and encodes:
//
//	var guard agui.Guard
//	for _, e := range []agui.Event{
//		&agui.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: agui.Version},
//		&agui.TextMessageStart{MessageID: "m"},
//		&agui.TextMessageContent{MessageID: "m", Delta: "Hello"},
//		&agui.TextMessageEnd{MessageID: "m"},
//		&agui.RunFinished{ThreadID: "t", RunID: "r"},
//	} {
//		if err := guard.Check(e); err != nil { … }
//		frame, err := agui.Encode(e)
//	}
//
// The rules of the package:
//
//   - Absent is not null. An optional member without a value (an empty string,
//     a nil pointer, slice, map or raw value) is omitted. Members that must be
//     present and may be null (a snapshot, a CUSTOM value) are written as null.
//     An empty string in an optional member therefore means absent, also when
//     it was received.
//   - What is not interpreted (state, metadata, patches, schemas) stays
//     json.RawMessage: numbers as they were written, null as data, members in
//     their order. Only insignificant space is lost.
//   - What is not known is kept: unknown members in Unknown, unknown variants
//     with their type, unknown events in UnknownEvent. Decoding, encoding and
//     decoding again gives an equal value. Strip removes such material.
//   - The same value always encodes to the same bytes, "type" first.
//   - Every wire object shows its members in one method, fields, to the encoder,
//     the decoder and the stripper. To add a member, add one line there.
//
// Values are plain data, safe to share as long as nobody changes them. The
// types with state (ChunkExpander, Verifier, Guard, Reducer) belong to one goroutine.
//
// Protocol 1.1 is understood; 1.0 is what a stream declares (see Version).
package agui
