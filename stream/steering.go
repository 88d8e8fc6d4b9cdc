package stream

// Steering is the result of an open record whose step receives the messages that an active run was
// steered with. The record has the shared flag, which tells it from the opening of a run.
type Steering struct {
	// Inputs are the sequences of accepted proposals, in the order in which they were accepted.
	Inputs []uint64 `json:"inputs"`
	// Scope is that of the step; see [Result].
	Scope string `json:"scope,omitempty"`
}

// OpensStep reports whether the record has the lifecycle events of a step.
func (r *Record) OpensStep() bool { return r.Kind == KindOpen || r.Kind == KindBegin }

// OpensRun reports whether the record begins a run. Its result is an Opening then.
func (r *Record) OpensRun() bool { return r.OpensStep() && r.HasResult() && !r.shared }

// Steers reports whether the record adds messages to an active run. Its result is a Steering then.
func (r *Record) Steers() bool { return r.OpensStep() && r.HasResult() && r.shared }
