package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents/pipeline"
)

// Of 10,000 branches that fail in as many ways, as many are told of as one payload has room for, and then no other one begins. All are in
// their order, and what they failed with is theirs as far as there are not too many ways.
func TestFailuresOfManyBranches(t *testing.T) {
	t.Parallel()
	const count = 10_000
	long := strings.Repeat(`"`, 300)
	f := &fanOut{fan: &Fan{Path: strings.Repeat("p", 400), Count: count, AtOnce: 100, Record: 1 << 60, Last: 1 << 60}}
	failed := 0
	for index := count - 1; index >= 0 && !f.failed(); index-- {
		f.fail(index, pipeline.Failure{Code: fmt.Sprint("code_", index), Message: long})
		failed++
	}
	for index := range f.fan.AtOnce { // those that were under way
		f.fail(index, pipeline.Failure{Code: string(OutcomeCancelled)})
	}
	if failed != maxFailures+1 || len(f.fan.Failures) != maxReasons {
		t.Errorf("%d have failed, for %d reasons", failed, len(f.fan.Failures))
	}
	all := f.fan.BranchFailures()
	if len(all) != failed+f.fan.AtOnce || !slices.IsSortedFunc(all, func(a, b pipeline.BranchFailure) int { return a.Index - b.Index }) {
		t.Errorf("told of are %d", len(all))
	}
	for _, b := range all[len(all)-maxReasons+1:] {
		if b.Code != fmt.Sprint("code_", b.Index) {
			t.Errorf("branch %d has failed with %s", b.Index, b.Code)
		}
	}
	w := Walk{Cursor: pipeline.Cursor{Frames: make([]pipeline.Frame, 12), Undo: []string{strings.Repeat("u", 4<<10)}}, Fan: f.fan}
	if _, err := DataConverter().ToPayload(Advance{Step: Step{Run: Run{Thread: strings.Repeat("t", 100)}}, Walk: w}); err != nil {
		t.Error(err)
	}
}

// What a fan has no failure of, it has none of.
func TestBranchFailuresOfNone(t *testing.T) {
	t.Parallel()
	if all := (*Fan)(nil).BranchFailures(); all != nil {
		t.Errorf("%+v", all)
	}
}
