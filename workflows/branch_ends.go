package workflows

import "encoding/binary"

// Branches that come to their end may have to be compensated for much later. Each says in its last record what it has
// done; the step knows these records. There are up to agents.MaxItemsCompensated of them, and all have to be told of in
// one payload: so each is two varints, the differences to the one before.

// noteEnd notes the record with which a branch came to its end.
func (f *Branches) noteEnd(index int, seq uint64) {
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
