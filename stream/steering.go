package stream

// Steering is the note beside the events that open a step which is told what people have said while
// the run was under way. Its record is one that is shared, which tells it from the opening of a run.
type Steering struct {
	// Inputs are the sequences of accepted proposals, in the order in which they were accepted.
	Inputs []uint64 `json:"inputs"`
	// Scope is that of the step; see [Result].
	Scope string `json:"scope,omitempty"`
}

// OpensRun tells whether the record begins a run: then its result is an Opening.
func (r *Record) OpensRun() bool { return r.Kind == KindOpen && r.HasResult() && !r.shared }

// Steers tells whether the record brings in what people have said: then its result is a Steering.
func (r *Record) Steers() bool { return r.Kind == KindOpen && r.HasResult() && r.shared }
