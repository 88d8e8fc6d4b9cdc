package stream

import (
	"context"
	"slices"
)

// Steering is the note beside the events that open a step which is told what people have said while
// the run was under way. Its record is one that is shared, which tells it from the opening of a run.
type Steering struct {
	// Inputs are the sequences of accepted proposals, in the order in which they were accepted.
	Inputs []uint64 `json:"inputs"`
	// Scope is that of the step; see [Result].
	Scope string `json:"scope,omitempty"`
}

// opensRun tells whether the record begins a run: then its result is an Opening.
func (r *Record) opensRun() bool { return r.Kind == KindOpen && r.HasResult() && !r.shared }

// steers tells whether the record brings in what people have said: then its result is a Steering.
func (r *Record) steers() bool { return r.Kind == KindOpen && r.HasResult() && r.shared }

// steer puts what people have said at the end of the conversation. What stands there already was said
// twice.
func (f *fold) steer(ctx context.Context, rec *Record) error {
	if !rec.steers() {
		return nil
	}
	var s Steering
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
