package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/stream"
)

// addSteering appends the messages with which an active run was steered, from an open record.
// Messages that the conversation has are not repeated.
func (f *folder) addSteering(ctx context.Context, rec *stream.Record) error {
	if !rec.Steers() {
		return nil
	}
	var s stream.Steering
	if err := rec.Result(ctx, &s); err != nil {
		return err
	}
	for _, seq := range s.Inputs {
		in, err := f.readInput(ctx, seq)
		if err != nil {
			return err
		}
		f.addInputContributors(in)
		for _, message := range in.Accepted.Tail {
			found := slices.ContainsFunc(f.snap.Entries, func(e Entry) bool { return e.Message.ID == message.ID })
			if message.Message != nil && !found {
				f.snap.Entries = append(f.snap.Entries, Entry{Message: *message.Message, Sent: sentDigest(*message.Message), Scope: s.Scope, Since: rec.Seq})
			}
		}
	}
	return nil
}
