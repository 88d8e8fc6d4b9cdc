package view

import "github.com/perdure/perdure/stream"

// reader describes the reader of a projection: where it starts and which events it understands.
type reader struct {
	generation stream.Generation // "" = the generation of the run's input
	from       *stream.Cursor    // nil = from the run's first record
	spectator  bool              // a spectator: it did not send the run's input, and does not have its messages
	heal       bool              // a full snapshot has to precede the run's last event (see stream.Cursor)
	joining    bool              // it gets a prelude instead of the earlier events (join.go)
}

// readerOf returns the reader with a cursor, or without one (nil). A cursor has the generation of
// its own stream, which replaces the given one.
func readerOf(generation stream.Generation, from *stream.Cursor) reader {
	r := reader{generation: generation, from: from}
	if from != nil {
		r.generation, r.spectator, r.heal = from.Generation, from.Spectator, from.Heal
	}
	return r
}
