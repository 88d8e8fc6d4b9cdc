package runs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

// openInterrupts returns open interrupts whose IDs and digests are as long as those of real calls.
func openInterrupts(calls, quorum int) *runs.Interrupts {
	s := quorumInterrupts(quorum, calls)
	for i := range s.Items {
		item := &s.Items[i]
		item.ID = fmt.Sprintf("call_%026d", i)
		item.Approval.ArgsDigest, item.Approval.RuleDigest = fmt.Sprintf("%032d", i), "0123456789abcdef"
	}
	return s
}

// decideAll casts all votes that the interrupts can hold, each with an edit, and then decides each
// interrupt.
func decideAll(s *runs.Interrupts, quorum int) {
	edited := strings.Repeat("e", 32)
	decide := func(item runs.Interrupt, by, args string) {
		d := runs.Decision{CallID: item.ID, Kind: runs.DecisionEdit, By: fmt.Sprintf("%016s", by), ArgsDigest: args, Digest: fmt.Sprintf("%032s", by+args), Proposal: 1 << 40}
		s.Decide(d, decidedAt)
	}
	for _, item := range s.Items {
		for voter := range quorum - 1 {
			decide(item, fmt.Sprint("a", voter), item.Approval.ArgsDigest)
			decide(item, fmt.Sprint("b", voter), edited)
		}
	}
	for _, item := range s.Items {
		decide(item, "z", edited)
	}
}

// TestInterruptsFitWithDecisions: interrupts that fit still fit into one payload when all votes are
// cast and all calls are decided.
func TestInterruptsFitWithDecisions(t *testing.T) {
	t.Parallel()
	in := runs.Input{Run: runs.Ref{Tenant: "default", Thread: "t", ID: "r"}, AgentRef: runs.AgentRef{Agent: "a", Revision: "v"}, Input: 1, Digest: "d"}
	for _, quorum := range []int{1, 2, 3, 5} {
		most := 0
		for calls := 1; calls <= runs.MaxInterrupts; calls++ {
			s := openInterrupts(calls, quorum)
			if !s.Fits(in) {
				continue
			}
			most = calls
			decideAll(s, quorum)
			if !s.IsResolved() {
				t.Fatalf("quorum %d, %d calls: last decision resolves = false, want true", quorum, calls)
			}
			if _, err := runs.DataConverter().ToPayload(runs.ParkedInput{Run: in, Interrupts: s}); err != nil {
				t.Errorf("quorum %d, %d calls: payload with all decisions: got %v, want no error", quorum, calls, err)
			}
		}
		if most == 0 || quorum == 1 && most != runs.MaxInterrupts {
			t.Errorf("quorum %d: calls that fit: got %d, want some, and %d without a quorum", quorum, most, runs.MaxInterrupts)
		}
	}
	for calls, want := range map[int]bool{runs.MaxInterrupts: true, runs.MaxInterrupts + 1: false} {
		if got := (&runs.Interrupts{Items: make([]runs.Interrupt, calls)}).Fits(in); got != want {
			t.Errorf("Fits of %d small interrupts = %t, want %t", calls, got, want)
		}
	}
}

// TestFitsWithOtherContent: FitsWith counts the bytes that the payload has besides the interrupts.
func TestFitsWithOtherContent(t *testing.T) {
	t.Parallel()
	in := runs.Input{Run: runs.Ref{Tenant: "default", Thread: "t", ID: "r"}}
	s := openInterrupts(4, 1)
	room := 0
	for room < runs.MaxPayload && s.FitsWith(in, room+1) {
		room++
	}
	if room == 0 || room >= runs.MaxPayload {
		t.Fatalf("room besides the interrupts = %d, want more than 0 and less than %d", room, runs.MaxPayload)
	}
	in.Run.Thread = strings.Repeat("t", 1+10)
	if s.FitsWith(in, room-9) {
		t.Error("FitsWith of a thread ID that is 10 bytes longer, with 9 bytes less = true, want false")
	}
	if !s.FitsWith(in, room-10) {
		t.Error("FitsWith of a thread ID that is 10 bytes longer, with 10 bytes less = false, want true")
	}
	in.Queue = []runs.Input{{Digest: strings.Repeat("q", 1000)}}
	if !s.FitsWith(in, room-10) {
		t.Error("FitsWith of an input with a queue = false, want true: a full queue is counted")
	}
}

// TestFitsAnswered: each open interrupt and each further decision needs the room of one decision.
func TestFitsAnswered(t *testing.T) {
	t.Parallel()
	most := func(s *runs.Interrupts, decisions int) int {
		bytes := 0
		for bytes < runs.MaxPayload && s.FitsAnswered(bytes+1, decisions) {
			bytes++
		}
		return bytes
	}
	s := openInterrupts(3, 1)
	all, further := most(s, 0), most(s, 2)
	s.Items[0].Decision = &runs.Decision{CallID: s.Items[0].ID, Kind: runs.DecisionReject}
	decision := most(s, 0) - all
	if decision <= 0 {
		t.Errorf("room that a decided interrupt leaves = %d, want more than 0", decision)
	}
	if got := all - further; got != 2*decision {
		t.Errorf("room of two further decisions = %d, want %d", got, 2*decision)
	}
}

// TestReserve: open interrupts reserve room for their decisions and votes, decided ones do not.
func TestReserve(t *testing.T) {
	t.Parallel()
	if got := (*runs.Interrupts)(nil).Reserve(); got != 0 {
		t.Errorf("Reserve without interrupts = %d, want 0", got)
	}
	open := openInterrupts(2, 1).Reserve()
	decided := openInterrupts(2, 1)
	decided.CancelAll(time.Time{})
	if got := decided.Reserve(); got >= open {
		t.Errorf("Reserve of decided interrupts = %d, want less than %d", got, open)
	}
	voted := openInterrupts(1, 2)
	voted.Decide(runs.Decision{CallID: voted.Items[0].ID, Kind: runs.DecisionEdit, By: strings.Repeat("b", 16), Digest: strings.Repeat("d", 32), ArgsDigest: strings.Repeat("e", 32), Proposal: 1 << 40}, decidedAt)
	vote, err := json.Marshal(voted.Items[0].Votes[0])
	if err != nil {
		t.Fatal(err)
	}
	for quorum, votes := range map[int]int{1: 0, 2: 2, 3: 4} { // one less than the quorum, for the model's arguments and for an edit
		if got := openInterrupts(2, quorum).Reserve() - open; got < 2*votes*len(vote) {
			t.Errorf("room for the votes of two calls with a quorum of %d = %d, want at least %d", quorum, got, 2*votes*len(vote))
		}
	}
}
