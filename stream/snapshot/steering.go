package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/stream"
)

// steer appends the messages with which an active run was steered, from an open record. Messages
// that the conversation has are not repeated.
func (f *fold) steer(ctx context.Context, rec *stream.Record) error {
	if !rec.Steers() {
		return nil
	}
	var s stream.Steering
	if err := rec.Result(ctx, &s); err != nil {
		return err
	}
	for _, seq := range s.Inputs {
		in, err := f.input(ctx, seq)
		if err != nil {
			return err
		}
		for _, said := range in.Accepted.Tail {
			known := slices.ContainsFunc(f.r.Entries, func(e Entry) bool { return e.Message.ID == said.ID })
			if said.Message != nil && !known {
				f.r.Entries = append(f.r.Entries, Entry{Message: *said.Message, Sent: sentDigest(*said.Message), Scope: s.Scope, Since: rec.Seq})
			}
		}
	}
	return nil
}
