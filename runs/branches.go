package runs

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
)

// Branches that come to their end may have to be compensated for much later. Each says in its last record what it has
// done; the step knows these records. There are up to agents.MaxItemsCompensated of them, and all have to be told of in
// one payload: so each is two varints, the differences to the one before.

// NoteEnd notes the record with which a branch came to its end.
func (f *Branches) NoteEnd(index int, seq uint64) {
	f.Ends = binary.AppendVarint(f.Ends, int64(index-f.EndedIndex))
	f.Ends = binary.AppendVarint(f.Ends, int64(seq-f.EndedSeq)) //nolint:gosec // a difference, which wraps back
	f.EndedIndex, f.EndedSeq = index, seq
}

// EndRecords are the records with which branches came to their end that have done something to compensate for, by the
// branch's index; 0 = not so.
func (f *Branches) EndRecords() []uint64 {
	records := make([]uint64, f.Count)
	var index int
	var seq uint64
	for rest := f.Ends; len(rest) > 0; {
		by, n := binary.Varint(rest)
		on, m := binary.Varint(rest[max(n, 0):])
		if n <= 0 || m <= 0 {
			break // nobody writes such a thing
		}
		rest, index, seq = rest[n+m:], index+int(by), seq+uint64(on) //nolint:gosec // see above
		if index >= 0 && index < len(records) {
			records[index] = seq
		}
	}
	return records
}

// Branches is a step with branches.
type Branches struct {
	Path string `json:"path"`
	// Names are those of the branches; none = they go by their numbers.
	Names []string `json:"names,omitempty"`
	Count int      `json:"count"`
	// Concurrency is how many may be under way at a time.
	Concurrency int `json:"concurrency"`
	// StopOnFailure tells that none begins when one has failed, and that the others are cancelled.
	StopOnFailure bool `json:"stopOnFailure,omitempty"`
	// Compensates tells that there is something that compensates for branches.
	Compensates bool `json:"compensates,omitempty"`
	// Ends are the records with which branches ended that have done something to compensate for: see EndRecords.
	// EndedIndex and EndedSeq are the last one of them.
	Ends       []byte `json:"ends,omitempty"`
	EndedIndex int    `json:"endedIndex,omitempty"`
	EndedSeq   uint64 `json:"endedSeq,omitempty"`
	// Record has the items; 0 = the branches have none.
	Record   uint64    `json:"record,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Next is the first branch that has not begun. Failures are the branches that have failed.
	Next     int             `json:"next"`
	Failures []BranchFailure `json:"failures,omitempty"`
	// Last is the highest record of those that have ended.
	Last uint64 `json:"last,omitempty"`
	// Suspended tells that branches have ended which wait for people: the run that has the answers begins them again.
	Suspended bool `json:"suspended,omitempty"`
}

// BranchFailure is why some of the branches failed.
type BranchFailure struct {
	pipeline.Failure
	Branches []int `json:"branches"`
}

// BranchFailures are the branches that failed, in their order.
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
