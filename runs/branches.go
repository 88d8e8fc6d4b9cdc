package runs

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

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
	// Ends encodes the last record of each branch that has ended, in the order of the ends: the
	// index and the sequence, as differences from the previous ones (two varints). Branches may
	// have to be compensated for long after their end, and these records have what they did. One
	// payload must hold agents.MaxItemsCompensated of them. LastEndedIndex and LastEndedSeq are the
	// last ones.
	Ends           []byte `json:"ends,omitempty"`
	LastEndedIndex int    `json:"endedIndex,omitempty"`
	LastEndedSeq   uint64 `json:"endedSeq,omitempty"`
	// Record is the record with the items; 0 = there are none.
	Record   uint64    `json:"record,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Next is the index of the first branch that has not begun.
	Next     int            `json:"next"`
	Failures []FailureGroup `json:"failures,omitempty"`
	// HighestRecord is the highest record of the branches that have ended.
	HighestRecord uint64 `json:"last,omitempty"`
	// Suspended tells that branches ended with interrupts: the run that has the decisions begins
	// them again.
	Suspended bool `json:"suspended,omitempty"`
}

// NoteEnd adds the record with which a branch ended.
func (b *Branches) NoteEnd(index int, seq uint64) {
	b.Ends = binary.AppendVarint(b.Ends, int64(index-b.LastEndedIndex))
	b.Ends = binary.AppendVarint(b.Ends, int64(seq-b.LastEndedSeq)) //nolint:gosec // a difference, which wraps back
	b.LastEndedIndex, b.LastEndedSeq = index, seq
}

// EndRecords returns the last records of the branches that may need compensation, by index; 0 = the
// branch needs none. The error is a defect.
func (b *Branches) EndRecords() ([]uint64, error) {
	records := make([]uint64, b.Count)
	var index int
	var seq uint64
	for rest := b.Ends; len(rest) > 0; {
		indexDelta, n := binary.Varint(rest)
		seqDelta, m := binary.Varint(rest[max(n, 0):])
		if n <= 0 || m <= 0 {
			return nil, errors.New("runs: the ends of branches are not those that NoteEnd writes")
		}
		rest = rest[n+m:]
		index += int(indexDelta)
		seq += uint64(seqDelta) //nolint:gosec // see NoteEnd
		if index >= 0 && index < len(records) {
			records[index] = seq
		}
	}
	return records, nil
}

// FailureGroup is a failure, with the indexes of the branches that had it.
type FailureGroup struct {
	pipeline.Failure
	Branches []int `json:"branches"`
}

// BranchFailures returns the failed branches, by index.
func (f *Branches) BranchFailures() []pipeline.BranchFailure {
	if f == nil {
		return nil
	}
	var all []pipeline.BranchFailure
	for _, group := range f.Failures {
		for _, index := range group.Branches {
			all = append(all, pipeline.BranchFailure{Index: index, Failure: group.Failure})
		}
	}
	slices.SortFunc(all, func(a, b pipeline.BranchFailure) int { return a.Index - b.Index })
	return all
}
