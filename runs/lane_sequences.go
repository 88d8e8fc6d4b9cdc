package runs

import "slices"

// LaneSequences are the places in the run's log that an execution has reached. They tell the next
// activity what it must have seen, and what attempts that failed may have left open. The zero value
// is that of a run that has not begun.
type LaneSequences struct {
	// Main is the last record of the main lane, that of the run's agent; 0 = the run has
	// not begun.
	Main uint64 `json:"main"`
	// Lanes are the last records of the lanes of tool calls, by lane; 0 = none after Main is known.
	Lanes []uint64 `json:"lanes,omitempty"`
	// Interrupts is the last record of the lane that has the interrupts of children.
	Interrupts uint64 `json:"interrupts,omitempty"`
	// OpenStep is the step whose STEP_FINISHED the next record carries; "" = none is open.
	OpenStep string `json:"openStep,omitempty"`
	// Unfinished are the lanes of calls that failed or were cancelled: a late attempt may still
	// write to them.
	Unfinished []Lane `json:"unfinished,omitempty"`
	// Failed is the step that failed on the main lane since its last record.
	Failed *FailedStep `json:"failed,omitempty"`
}

// HasBegun reports whether the log has a record of the run.
func (p *LaneSequences) HasBegun() bool { return p.Main > 0 }

// NoteRecord notes the last record of the main lane, and the step that is open after it; "" = none.
func (p *LaneSequences) NoteRecord(seq uint64, openStep string) { p.Main, p.OpenStep = seq, openStep }

// ProvideLanes makes room for calls on the first n lanes.
func (p *LaneSequences) ProvideLanes(n int) {
	for len(p.Lanes) < n {
		p.Lanes = append(p.Lanes, 0)
	}
}

// LeaveUnfinished notes a lane whose call came to no end.
func (p *LaneSequences) LeaveUnfinished(l Lane) { p.Unfinished = append(p.Unfinished, l) }

// Retry forgets that a lane is unfinished: another activity takes it over.
func (p *LaneSequences) Retry(lane int) {
	p.Unfinished = slices.DeleteFunc(p.Unfinished, func(l Lane) bool { return l.Index == lane })
}

// TakeOver notes that the record seq of the main lane closed what unfinished lanes and a failed
// step had left open. The ends of the lanes of calls are unknown from then on.
func (p *LaneSequences) TakeOver(seq uint64) {
	for _, lane := range p.Unfinished {
		if !lane.Branch {
			p.Lanes[lane.Index] = 0
		}
	}
	p.Main, p.OpenStep, p.Unfinished, p.Failed = seq, "", nil, nil
}
