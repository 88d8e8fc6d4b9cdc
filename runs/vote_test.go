package runs_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

var decidedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// quorumInterrupts returns interrupts about the calls c0, c1, … of one tool, under one rule that
// needs quorum approvals. The digest of each call's arguments is "model".
func quorumInterrupts(quorum, calls int) *runs.Interrupts {
	s := &runs.Interrupts{MessageID: "m", RunID: "r"}
	for i := range calls {
		s.Items = append(s.Items, runs.Interrupt{
			Call:  runs.Call{ID: fmt.Sprint("c", i), Tool: "book", Approval: &runs.Approval{Rule: 1, ArgsDigest: "model", RuleDigest: "rule", Quorum: quorum}},
			Index: i,
		})
	}
	return s
}

// decisionOf returns an approver's decision about the call c0. args is the digest of edited
// arguments. Equal decisions of one approver have equal digests.
func decisionOf(approver string, kind runs.DecisionKind, args string) runs.Decision {
	return runs.Decision{CallID: "c0", Kind: kind, By: approver, ArgsDigest: args, Digest: fmt.Sprint(approver, kind, args)}
}

// approvalBy returns an approval of an approver.
func approvalBy(approver string) runs.Decision { return decisionOf(approver, runs.DecisionApprove, "") }

// editBy returns an edit of an approver.
func editBy(approver, args string) runs.Decision {
	return decisionOf(approver, runs.DecisionEdit, args)
}

// voteOf returns a decision as the interrupts record it while it is a vote: without the call.
func voteOf(d runs.Decision) *runs.Decision {
	d.CallID = ""
	return &d
}

// tallies returns the tallies of a quorum of two: the votes for the model's arguments, and for each
// edit.
func tallies(model int, edits ...string) []runs.Tally {
	all := []runs.Tally{{Kind: runs.DecisionApprove, ArgsDigest: "model", Votes: model, Missing: 2 - model}}
	for _, args := range edits {
		all = append(all, runs.Tally{Kind: runs.DecisionEdit, ArgsDigest: args, Votes: 1, Missing: 1})
	}
	return all
}

// wantDecision fails the test unless the call c0 has a decision of a kind by an approver for some
// arguments; by is empty if it has none.
func wantDecision(t *testing.T, s *runs.Interrupts, by string, kind runs.DecisionKind, args string) {
	t.Helper()
	d := s.Find("c0").Decision
	if d == nil {
		if by != "" {
			t.Errorf("decision: got none, want %s by %s", kind, by)
		}
		return
	}
	if d.By != by || d.Kind != kind || d.ArgsDigest != args {
		t.Errorf("decision: got %s by %q for %q, want %s by %q for %q", d.Kind, d.By, d.ArgsDigest, kind, by, args)
	}
}

// TestDecideQuorum: an approval is a vote. The vote that completes the quorum for equal arguments
// is the decision. Each approver has one vote, the last one.
func TestDecideQuorum(t *testing.T) {
	t.Parallel()
	type decide struct {
		decision runs.Decision
		want     runs.DecisionResult
	}
	missing := func(tallies []runs.Tally) runs.DecisionResult {
		return runs.DecisionResult{Missing: 1, Tallies: tallies}
	}
	repeated := func(d runs.Decision, tallies []runs.Tally) runs.DecisionResult {
		return runs.DecisionResult{Missing: 1, Tallies: tallies, Recorded: voteOf(d)}
	}
	for name, c := range map[string]struct {
		quorum int // 0 = two
		steps  []decide
		by     string // who decides; "" = the call is open
		kind   runs.DecisionKind
		args   string
	}{
		"one approver without a quorum": {
			quorum: 1, steps: []decide{{approvalBy("ann"), runs.DecisionResult{}}},
			by: "ann", kind: runs.DecisionApprove, args: "model",
		},
		"one of two": {steps: []decide{{approvalBy("ann"), missing(tallies(1))}}},
		"two of two": {
			steps: []decide{{approvalBy("ann"), missing(tallies(1))}, {approvalBy("bob"), runs.DecisionResult{}}},
			by:    "bob", kind: runs.DecisionApprove, args: "model",
		},
		"one approver twice": {
			steps: []decide{{approvalBy("ann"), missing(tallies(1))}, {approvalBy("ann"), repeated(approvalBy("ann"), tallies(1))}},
		},
		"anonymous callers": {
			steps: []decide{{approvalBy(""), missing(tallies(1))}, {approvalBy(""), repeated(approvalBy(""), tallies(1))}},
		},
		"different arguments": {
			steps: []decide{{approvalBy("ann"), missing(tallies(1))}, {editBy("bob", "fewer"), missing(tallies(1, "fewer"))}},
		},
		"equal edits": {
			steps: []decide{{editBy("ann", "fewer"), missing(tallies(0, "fewer"))}, {editBy("bob", "fewer"), runs.DecisionResult{}}},
			by:    "bob", kind: runs.DecisionEdit, args: "fewer",
		},
		"an edit to the model's arguments": {
			steps: []decide{{approvalBy("ann"), missing(tallies(1))}, {editBy("bob", "model"), runs.DecisionResult{}}},
			by:    "bob", kind: runs.DecisionEdit, args: "model",
		},
		"an edit that differs from another approver's": {
			steps: []decide{
				{editBy("ann", "fewer"), missing(tallies(0, "fewer"))},
				{editBy("bob", "more"), runs.DecisionResult{Error: runs.ErrorOtherEdit, Recorded: voteOf(editBy("ann", "fewer"))}},
			},
		},
		"a second edit of the same approver": {
			steps: []decide{{editBy("ann", "fewer"), missing(tallies(0, "fewer"))}, {editBy("ann", "more"), missing(tallies(0, "more"))}},
		},
		"a changed vote": {
			steps: []decide{
				{approvalBy("ann"), missing(tallies(1))}, {editBy("ann", "fewer"), missing(tallies(0, "fewer"))},
				{approvalBy("bob"), missing(tallies(1, "fewer"))}, {approvalBy("ann"), runs.DecisionResult{}},
			},
			by: "ann", kind: runs.DecisionApprove, args: "model",
		},
		"a rejection": {
			steps: []decide{{approvalBy("ann"), missing(tallies(1))}, {decisionOf("bob", runs.DecisionReject, ""), runs.DecisionResult{}}},
			by:    "bob", kind: runs.DecisionReject, args: "model",
		},
		"an answer": {
			steps: []decide{{decisionOf("ann", runs.DecisionAnswer, ""), runs.DecisionResult{}}},
			by:    "ann", kind: runs.DecisionAnswer, args: "model",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quorumInterrupts(cmp.Or(c.quorum, 2), 1)
			for i, step := range c.steps {
				if diff := gocmp.Diff(step.want, s.Decide(step.decision, decidedAt)); diff != "" {
					t.Errorf("result of decision %d (-want +got):\n%s", i, diff)
				}
			}
			wantDecision(t, s, c.by, c.kind, c.args)
		})
	}
}

// TestDecideResolvedInterrupt: a decision does not change. An approver who repeats the decision or
// one of the votes for it receives the recorded decision, any other caller an error.
func TestDecideResolvedInterrupt(t *testing.T) {
	t.Parallel()
	recorded := approvalBy("bob")
	recorded.ArgsDigest = "model"
	copied := approvalBy("ann")
	copied.By = "eve"
	for name, c := range map[string]struct {
		decision runs.Decision
		want     string
	}{
		"the decision":             {approvalBy("bob"), ""},
		"a vote for it":            {approvalBy("ann"), ""},
		"a vote of another person": {approvalBy("eve"), runs.ErrorDecided},
		"a rejection":              {decisionOf("bob", runs.DecisionReject, ""), runs.ErrorDecided},
		"a vote for other values":  {editBy("dan", "fewer"), runs.ErrorDecided},
		"a copy of a vote for it":  {copied, runs.ErrorDecided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quorumInterrupts(2, 1)
			s.Decide(editBy("dan", "fewer"), decidedAt)
			s.Decide(approvalBy("ann"), decidedAt)
			s.Decide(approvalBy("bob"), decidedAt)
			want := runs.DecisionResult{Error: c.want, Recorded: &recorded}
			if diff := gocmp.Diff(want, s.Decide(c.decision, decidedAt)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			wantDecision(t, s, "bob", runs.DecisionApprove, "model")
		})
	}
}

// TestRejectionDropsOwnVote: the decision is the approver's last word. Votes of others stay
// recorded.
func TestRejectionDropsOwnVote(t *testing.T) {
	t.Parallel()
	s := quorumInterrupts(3, 1)
	for _, d := range []runs.Decision{approvalBy("ann"), approvalBy("bob"), decisionOf("ann", runs.DecisionReject, "")} {
		s.Decide(d, decidedAt)
	}
	if diff := gocmp.Diff([]runs.Decision{*voteOf(approvalBy("bob"))}, s.Items[0].Votes); diff != "" {
		t.Errorf("votes (-want +got):\n%s", diff)
	}
	if votes := s.Items[0].DecidingVotes(); len(votes) != 0 {
		t.Errorf("votes for the decision: got %+v, want none for a rejection", votes)
	}
}

// TestDecidingVotes: the votes of a quorum are those for the arguments of the call that is made.
func TestDecidingVotes(t *testing.T) {
	t.Parallel()
	s := quorumInterrupts(3, 1)
	for _, d := range []runs.Decision{editBy("eve", "fewer"), approvalBy("ann"), approvalBy("bob"), approvalBy("dan")} {
		s.Decide(d, decidedAt)
	}
	want := []runs.Vote{{Digest: approvalBy("ann").Digest}, {Digest: approvalBy("bob").Digest}}
	if diff := gocmp.Diff(want, s.Items[0].DecidingVotes()); diff != "" {
		t.Errorf("votes for the decision (-want +got):\n%s", diff)
	}
}

// TestDecideRefuses: a decision must fit the interrupt. Only a cancel resolves an expired one.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	result := decisionOf("ann", runs.DecisionToolResult, "")
	answer := decisionOf("ann", runs.DecisionAnswer, "")
	answer.Question = 2
	other := approvalBy("ann")
	other.CallID = "c9"
	approval := quorumInterrupts(1, 1).Items[0].Call
	for name, c := range map[string]struct {
		item     runs.Interrupt
		decision runs.Decision
		want     string
	}{
		"an unknown call":                    {runs.Interrupt{Call: approval}, other, runs.ErrorUnknownCall},
		"a result of an approval":            {runs.Interrupt{Call: approval}, result, runs.ErrorUnknownCall},
		"an approval of a client tool call":  {runs.Interrupt{Call: runs.Call{ID: "c0", Client: true}}, approvalBy("ann"), runs.ErrorUnknownCall},
		"a result of a client tool call":     {runs.Interrupt{Call: runs.Call{ID: "c0", Client: true}}, result, ""},
		"an approval of a question":          {runs.Interrupt{Call: runs.Call{ID: "c0"}, Question: &runs.Question{Number: 2}}, approvalBy("ann"), runs.ErrorUnknownCall},
		"an answer to the open question":     {runs.Interrupt{Call: runs.Call{ID: "c0"}, Question: &runs.Question{Number: 2}}, answer, ""},
		"an answer to an earlier question":   {runs.Interrupt{Call: runs.Call{ID: "c0"}, Question: &runs.Question{Number: 3}}, answer, runs.ErrorUnknownCall},
		"an approval at the time of expiry":  {runs.Interrupt{Call: approval, Expires: decidedAt}, approvalBy("ann"), runs.ErrorExpired},
		"an approval before the expiry":      {runs.Interrupt{Call: approval, Expires: decidedAt.Add(time.Nanosecond)}, approvalBy("ann"), ""},
		"a cancel of an expired interrupt":   {runs.Interrupt{Call: approval, Expires: decidedAt}, decisionOf("ann", runs.DecisionCancel, ""), ""},
		"an expiry of an expired interrupt":  {runs.Interrupt{Call: approval, Expires: decidedAt}, decisionOf("", runs.DecisionExpire, ""), runs.ErrorExpired},
		"a rejection of an expired approval": {runs.Interrupt{Call: approval, Expires: decidedAt}, decisionOf("ann", runs.DecisionReject, ""), runs.ErrorExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &runs.Interrupts{Items: []runs.Interrupt{c.item}}
			if diff := gocmp.Diff(runs.DecisionResult{Error: c.want}, s.Decide(c.decision, decidedAt)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if decided := s.Items[0].Decision != nil; decided != (c.want == "") {
				t.Errorf("the interrupt is resolved: got %t, want %t", decided, c.want == "")
			}
		})
	}
}

// TestConflictingVote: an edit conflicts with another approver's vote for another edit, and with
// nothing else.
func TestConflictingVote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		votes        []runs.Decision
		decision     runs.Decision
		wantConflict bool // with the first vote
	}{
		"another edit":                   {[]runs.Decision{editBy("ann", "fewer")}, editBy("bob", "more"), true},
		"an equal edit":                  {[]runs.Decision{editBy("ann", "fewer")}, editBy("bob", "fewer"), false},
		"an own edit":                    {[]runs.Decision{editBy("ann", "fewer")}, editBy("ann", "more"), false},
		"an approval":                    {[]runs.Decision{editBy("ann", "fewer")}, approvalBy("bob"), false},
		"an edit to the model's values":  {[]runs.Decision{editBy("ann", "fewer")}, editBy("bob", "model"), false},
		"an edit after an approval":      {[]runs.Decision{approvalBy("ann")}, editBy("bob", "more"), false},
		"a rejection":                    {[]runs.Decision{editBy("ann", "fewer")}, decisionOf("bob", runs.DecisionReject, ""), false},
		"an edit of a resolved approval": {[]runs.Decision{editBy("ann", "fewer"), editBy("eve", "fewer")}, editBy("bob", "more"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quorumInterrupts(2, 1)
			for _, d := range c.votes {
				s.Decide(d, decidedAt)
			}
			var want *runs.Decision
			if c.wantConflict {
				want = &c.votes[0]
			}
			if diff := gocmp.Diff(want, s.ConflictingVote([]runs.Decision{c.decision})); diff != "" {
				t.Errorf("conflicting vote (-want +got):\n%s", diff)
			}
		})
	}
}

// TestContradicts: an input contradicts a thread if it decides a resolved interrupt otherwise.
func TestContradicts(t *testing.T) {
	t.Parallel()
	s := quorumInterrupts(1, 1)
	for _, d := range []runs.Decision{approvalBy("ann"), decisionOf("ann", runs.DecisionReject, "")} {
		if s.Contradicts([]runs.Decision{d}) {
			t.Errorf("%s contradicts an open interrupt: got true, want false", d.Kind)
		}
	}
	s.Decide(approvalBy("ann"), decidedAt)
	for d, want := range map[runs.Decision]bool{
		approvalBy("ann"): false, approvalBy("bob"): true, decisionOf("ann", runs.DecisionReject, ""): true,
	} {
		if got := s.Contradicts([]runs.Decision{d}); got != want {
			t.Errorf("%s by %s contradicts the decision of ann: got %t, want %t", d.Kind, d.By, got, want)
		}
	}
}

// TestRememberedApproval: an approval with a scope resolves the open calls of the same tool under
// the same rule that the scope covers.
func TestRememberedApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scope       runs.RememberScope
		change      func(other *runs.Interrupt)
		wantCovered bool
	}{
		"a call with equal arguments":            {runs.RememberArguments, func(*runs.Interrupt) {}, true},
		"without a scope":                        {"", func(*runs.Interrupt) {}, false},
		"other arguments":                        {runs.RememberArguments, func(o *runs.Interrupt) { o.Approval.ArgsDigest = "more" }, false},
		"other arguments of the tool":            {runs.RememberTool, func(o *runs.Interrupt) { o.Approval.ArgsDigest = "more" }, true},
		"arguments with an equal canonical form": {runs.RememberArguments, func(o *runs.Interrupt) { o.Approval.ArgsDigest, o.Approval.Canonical = "spaced", "model" }, true},
		"another tool":                           {runs.RememberTool, func(o *runs.Interrupt) { o.Tool = "cancel" }, false},
		"another rule":                           {runs.RememberTool, func(o *runs.Interrupt) { o.Approval.Rule = 2 }, false},
		"a rule of another agent":                {runs.RememberTool, func(o *runs.Interrupt) { o.Approval.RuleDigest = "other" }, false},
		"an expired interrupt":                   {runs.RememberTool, func(o *runs.Interrupt) { o.Expires = decidedAt }, false},
		"a client tool call":                     {runs.RememberTool, func(o *runs.Interrupt) { o.Approval, o.Client = nil, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quorumInterrupts(1, 2)
			c.change(&s.Items[1])
			d := approvalBy("ann")
			d.Remember = c.scope
			s.Decide(d, decidedAt)
			var want *runs.Decision
			if c.wantCovered {
				d.CallID, d.ArgsDigest = "c1", s.Items[1].Approval.ArgsDigest
				want = &d
			}
			if diff := gocmp.Diff(want, s.Items[1].Decision); diff != "" {
				t.Errorf("decision about the other call (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRememberOfQuorum: a quorum remembers only what all of its votes remember. An edit remembers
// nothing.
func TestRememberOfQuorum(t *testing.T) {
	t.Parallel()
	const arguments, tool = runs.RememberArguments, runs.RememberTool
	for _, c := range []struct {
		edit                runs.DecisionKind
		first, second, want runs.RememberScope
	}{
		{"", tool, tool, tool}, {"", tool, arguments, arguments}, {"", arguments, tool, arguments}, {"", tool, "", ""}, {"", "", tool, ""},
		{runs.DecisionEdit, tool, tool, ""},
	} {
		s := quorumInterrupts(2, 1)
		first, second := approvalBy("ann"), approvalBy("bob")
		if c.edit != "" {
			first, second = editBy("ann", "fewer"), editBy("bob", "fewer")
		}
		first.Remember, second.Remember = c.first, c.second
		s.Decide(first, decidedAt)
		s.Decide(second, decidedAt)
		if got := s.Items[0].Decision.Remember; got != c.want {
			t.Errorf("%s%q and %q: remembered scope = %q, want %q", c.edit, c.first, c.second, got, c.want)
		}
	}
}

// TestVotesForAnswer: the quorum of a question's rule must give the same answer. Nobody may vote for
// another one meanwhile, and a rejection decides alone.
func TestVotesForAnswer(t *testing.T) {
	t.Parallel()
	ask := func() *runs.Interrupts {
		return &runs.Interrupts{Items: []runs.Interrupt{{
			Call: runs.Call{ID: "c0", Approval: &runs.Approval{Quorum: 2}}, Question: &runs.Question{Seq: 7, Number: 1, Remote: true},
		}}}
	}
	decide := func(s *runs.Interrupts, by string, kind runs.DecisionKind, answer string) runs.DecisionResult {
		d := decisionOf(by, kind, answer)
		d.Question = 1
		return s.Decide(d, decidedAt)
	}
	s := ask()
	if got := s.Items[0].Tallies(); len(got) > 0 {
		t.Errorf("tallies before a vote = %+v, want none", got)
	}
	want := runs.DecisionResult{Missing: 1, Tallies: []runs.Tally{{Kind: runs.DecisionAnswer, ArgsDigest: "yes", Votes: 1, Missing: 1}}}
	if diff := gocmp.Diff(want, decide(s, "ann", runs.DecisionAnswer, "yes")); diff != "" {
		t.Errorf("first answer (-want +got):\n%s", diff)
	}
	if got := decide(s, "bob", runs.DecisionAnswer, "no"); got.Error != runs.ErrorOtherEdit || got.Recorded.By != "ann" {
		t.Errorf("another answer: got %+v, want %s with the vote of ann", got, runs.ErrorOtherEdit)
	}
	if got := decide(s, "ann", runs.DecisionAnswer, "yes"); got.Recorded == nil || s.IsResolved() {
		t.Errorf("the same answer again: got %+v, want a repetition that decides nothing", got)
	}
	if got := decide(s, "bob", runs.DecisionAnswer, "yes"); got.Error != "" || !s.IsResolved() || s.Items[0].Decision.ArgsDigest != "yes" {
		t.Errorf("second answer: got %+v and %+v, want the decision", got, s.Items[0].Decision)
	}
	if votes := s.Items[0].DecidingVotes(); len(votes) != 1 {
		t.Errorf("deciding votes = %+v, want that of ann", votes)
	}
	if got := decide(s, "ann", runs.DecisionAnswer, "yes"); got.Error != "" || got.Recorded == nil {
		t.Errorf("the first answer after the decision: got %+v, want a repetition", got)
	}
	s = ask()
	decide(s, "ann", runs.DecisionAnswer, "yes")
	if got := decide(s, "bob", runs.DecisionReject, ""); got.Error != "" || !s.IsResolved() {
		t.Errorf("a rejection: got %+v, want the decision", got)
	}
}
