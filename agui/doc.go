// Package agui implements the vocabulary of the AG-UI protocol: its 31 events, its request, its
// messages, and the rules for a stream of events.
//
//	      Decode              Strip                Verifier            Reducer
//	JSON ────────► Event ──────────────► Event ──────────────► Event ──────────► messages,
//	     ◄────────        drops unknown          checks order,          assembles  state
//	      Encode          material               expands chunks
//
// A consumer uses these from left to right. A consumer of producers from before 1.0 adds a
// ThinkingUpgrade after Decode. A producer builds events as struct literals, checks them with a
// Guard, which is a Verifier with additional rules for producers, and encodes them:
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
//   - Absent is different from null. An optional member without a value (an empty string, a nil
//     pointer, slice, map or raw value) is omitted. A required member that may be null (a snapshot,
//     a CUSTOM value) is written as null. An empty string in an optional member means absent, also
//     in a received event.
//   - Values that the protocol leaves open (state, metadata, patches, schemas) stay
//     json.RawMessage. Number literals, nulls and the order of members are preserved; only
//     insignificant space is lost.
//   - Unknown material is preserved: unknown members in Unknown, unknown variants with their type,
//     unknown events in UnknownEvent. Decoding, encoding and decoding again results in an equal
//     value. Strip removes such material.
//   - The same value always encodes to the same bytes, with "type" first.
//   - Every wire object lists its members in one method, fields, for the encoder, the decoder and
//     the stripper. A new member needs one line there.
//
// Values are plain data, and safe to share while nobody changes them. The types with state
// (ChunkExpander, Verifier, Guard, Reducer, ThinkingUpgrade) belong to one goroutine.
//
// The package understands protocol 1.1, and producers declare 1.0 (see Version).
package agui
