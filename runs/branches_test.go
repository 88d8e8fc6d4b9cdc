package runs

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

// TestEndRecords: a step has the records at which its branches ended, in any order, and the records
// of as many branches as a step may have fit into a payload.
func TestEndRecords(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	b := &Branches{Count: agents.MaxItemsCompensated}
	want := make([]uint64, b.Count)
	seq := uint64(1) << 40
	for n, index := range r.Perm(b.Count) {
		if n%10 == 0 {
			continue // the branch has no record
		}
		seq += r.Uint64N(1000) - 20
		want[index] = seq
		b.NoteEnd(index, seq)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Branches
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	got, err := back.EndRecords()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, records (-want +got):\n%s", err, diff)
	}
	if len(raw) > 8<<10 {
		t.Errorf("branches: got %d bytes, want at most %d", len(raw), 8<<10)
	}
	back.Ends = append(back.Ends, 0x80) // truncated
	if got, err := back.EndRecords(); err == nil {
		t.Errorf("records of truncated data: got %v, want an error", got)
	}
}
