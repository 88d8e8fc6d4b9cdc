package runs

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// Branches may have to be compensated for long after they have ended. The last record of each has
// what it did, and Ends has the sequences of these records. There are up to
// agents.MaxItemsCompensated, in one payload: each takes two varints, the differences to the one
// before.

// NoteEnd adds the record with which a branch ended.
func (f *Branches) NoteEnd(index int, seq uint64) {
	f.Ends = binary.AppendVarint(f.Ends, int64(index-f.EndedIndex))
	f.Ends = binary.AppendVarint(f.Ends, int64(seq-f.EndedSeq)) //nolint:gosec // a difference, which wraps back
	f.EndedIndex, f.EndedSeq = index, seq
}

// EndRecords returns the last records of the branches that may need compensation, by index; 0 = the
// branch needs none.
func (f *Branches) EndRecords() []uint64 {
	records := make([]uint64, f.Count)
	var index int
	var seq uint64
	for rest := f.Ends; len(rest) > 0; {
		by, n := binary.Varint(rest)
		on, m := binary.Varint(rest[max(n, 0):])
		if n <= 0 || m <= 0 {
			break // NoteEnd writes no such bytes
		}
		rest, index, seq = rest[n+m:], index+int(by), seq+uint64(on) //nolint:gosec // see above
		if index >= 0 && index < len(records) {
			records[index] = seq
		}
	}
	return records
}

// Branches is a pipeline step with branches (parallel or map), and how far it has come.
type Branches struct {
	Path string `json:"path"`
	// Names are the branches' names; none = they are numbered.
	Names []string `json:"names,omitempty"`
	Count int      `json:"count"`
	// Concurrency is how many run at a time.
	Concurrency int `json:"concurrency"`
	// StopOnFailure tells that a failed branch cancels the others.
	StopOnFailure bool `json:"stopOnFailure,omitempty"`
	// Compensates tells that branches have compensations.
	Compensates bool `json:"compensates,omitempty"`
	// Ends has the records of [Branches.EndRecords], EndedIndex and EndedSeq the last of them.
	Ends       []byte `json:"ends,omitempty"`
	EndedIndex int    `json:"endedIndex,omitempty"`
	EndedSeq   uint64 `json:"endedSeq,omitempty"`
	// Record is the record with the items; 0 = there are none.
	Record   uint64    `json:"record,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Next is the index of the first branch that has not begun.
	Next     int             `json:"next"`
	Failures []BranchFailure `json:"failures,omitempty"`
	// Last is the highest record of the branches that have ended.
	Last uint64 `json:"last,omitempty"`
	// Suspended tells that branches ended with interrupts: the run that has the decisions begins
	// them again.
	Suspended bool `json:"suspended,omitempty"`
}

// BranchFailure is a failure, with the indexes of the branches that had it.
type BranchFailure struct {
	pipeline.Failure
	Branches []int `json:"branches"`
}

// BranchFailures returns the failed branches, by index.
func (f *Branches) BranchFailures() []pipeline.BranchFailure {
	if f == nil {
		return nil
	}
	var all []pipeline.BranchFailure
	for _, why := range f.Failures {
		for _, index := range why.Branches {
			all = append(all, pipeline.BranchFailure{Index: index, Failure: why.Failure})
		}
	}
	slices.SortFunc(all, func(a, b pipeline.BranchFailure) int { return a.Index - b.Index })
	return all
}
