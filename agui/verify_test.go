package agui

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerifierAccepts(t *testing.T) {
	t.Parallel()
	streams := map[string]string{
		"a whole run":                        "run; ST a; S m; C m; TS c<m; TA c; TE c; E m; TR c; SF a; fin",
		"several runs":                       "run; S m; E m; fin; run; S m; E m; fin; run; fin",
		"a late error":                       "run; fin; err; run; fin",
		"an error first":                     "err; run; fin",
		"an error with items open":           "run; S m; TS c; ST a; SA s; err; run; S m; E m; fin",
		"a truncated stream":                 "run; S m; C m",
		"reopened items":                     "run; S m; E m; S m; C m; E m; TS c; TE c; TS c; TA c; TE c; RS r; RE r; RS r; RE r; fin",
		"a span and its message by one id":   "run; RS r; RMS r; RMC r; RME r; RE r; fin",
		"a message and a call by one id":     "run; S x; TS x<x; TE x; E x; fin",
		"interleaved items":                  "run; S m; S n; C m; C n; E m; E n; fin",
		"one step name per owner":            "run; ST a; ST a@s; SF a; SF a@s; fin",
		"untagged continuations":             "run; S m@s; C m; E m; TS c@s; TA c; TE c; fin",
		"unannounced attribution":            "run; S m@s; E m@s; fin",
		"a nested subagent":                  "run; SA s; SA u<s; SZ u; SX s; fin",
		"a child of a closed subagent":       "run; SA s; SZ s; SA u<s; SZ u; fin",
		"a subagent id in the next run":      "run; SA s; SZ s; fin; run; SA s; SZ s; fin",
		"an answer to another run's call":    "run; TR c; fin",
		"a delta without a snapshot":         "run; AD a; EV nowhere; ET nowhere; fin",
		"a snapshot while something is open": "run; S m; MS u; C m; E m; fin",
		"a snapshot that changes an owner":   "run; S m@s; E m; MS m@u; S m@u; E m@u; fin",
		"an activity replaced by another":    "run; AS a@s; AS a@u; AD a@u; fin",
		"a call inheriting its owner":        "run; S m@s; TS c<m; TA c@s; TE c; E m; fin",
		"unknown events anywhere":            "unk; run; unk; fin; unk",
		"chunks":                             "run; tc m; tc -; cc c<f; rc r; fin",
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Verifier
			for i, e := range script(t, stream) {
				if err := v.Check(e); err != nil {
					t.Fatalf("event %d: %v", i, err)
				}
			}
		})
	}
}

// TestVerifierRefuses: each stream is refused at its last event.
func TestVerifierRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		stream   string
		wantRule Rule
		wantID   string
	}{
		{"S m", RuleFirstEvent, ""},
		{"fin", RuleFirstEvent, ""},
		{"run; run", RuleRunOpen, ""},
		{"run; fin; S m", RuleAfterTerminal, ""},
		{"run; fin; fin", RuleAfterTerminal, ""},
		{"run; fin; err; err", RuleAfterTerminal, ""},
		{"run; err; fin", RuleAfterTerminal, ""},
		{"err; raw", RuleAfterTerminal, ""},
		{"run; S m; S m", RuleAlreadyOpen, "m"},
		{"run; C m", RuleNotOpen, "m"},
		{"run; S m; E m; E m", RuleNotOpen, "m"},
		{"run; S m; fin", RuleOpenAtFinish, "m"},
		{"run; TS c; TS c", RuleAlreadyOpen, "c"},
		{"run; TA c", RuleNotOpen, "c"},
		{"run; TS c; TE c; TE c", RuleNotOpen, "c"},
		{"run; TS c; fin", RuleOpenAtFinish, "c"},
		{"run; RS r; RS r", RuleAlreadyOpen, "r"},
		{"run; RS r; RMC r", RuleNotOpen, "r"},
		{"run; RMS r; RE r", RuleNotOpen, "r"},
		{"run; RMS r; RMS r", RuleAlreadyOpen, "r"},
		{"run; RS r; fin", RuleOpenAtFinish, "r"},
		{"run; RMS r; fin", RuleOpenAtFinish, "r"},
		{"run; RME r", RuleNotOpen, "r"},
		{"run; ST a; ST a", RuleAlreadyOpen, "a"},
		{"run; ST a; SF a@s", RuleOwner, "a"},
		{"run; SF a", RuleNotOpen, "a"},
		{"run; ST a@s; fin", RuleOpenAtFinish, "a"},
		{"run; SA s; SA s", RuleAlreadyOpen, "s"},
		{"run; SA s; SZ s; SA s", RuleSubagentReused, "s"},
		{"run; SA s<u", RuleUnknownParent, "s"},
		{"run; SA s; SZ s; SX s", RuleNotOpen, "s"},
		{"run; SA s; fin", RuleOpenAtFinish, "s"},
		{"run; S m@s; C m@u", RuleOwner, "m"},
		{"run; S m; C m@s", RuleOwner, "m"},
		{"run; S m@s; E m; S m@u", RuleOwner, "m"},
		{"run; TS c@s; TE c@u", RuleOwner, "c"},
		{"run; S m@s; TS c<m@u", RuleOwner, "m"},
		{"run; S m@s; S n@u; TS c<m; TE c; TS c<n", RuleOwner, "c"},
		{"run; RS r@s; RMS r@u", RuleOwner, "r"},
		{"run; TS c@s; TE c; ET c@u", RuleOwner, "c"},
		{"run; RMS r@s; RME r; EV r@u", RuleOwner, "r"},
		{"run; TR c@s; EV r-c@u", RuleOwner, "r-c"},
		{"run; AS a@s; AD a@u", RuleOwner, "a"},
		{"run; MS m@s; S m@u", RuleOwner, "m"},
		{"run; tc -", RuleFirstChunk, ""},
		{"run; cc c", RuleFirstChunk, "c"},
		{"run; S m; tc m", RuleAlreadyOpen, "m"},
		{"run; tc m; E m", RuleNotOpen, "m"},
	}
	for _, tt := range tests {
		t.Run(tt.stream, func(t *testing.T) {
			t.Parallel()
			var v Verifier
			events := script(t, tt.stream)
			last := len(events) - 1
			for i, e := range events[:last] {
				if err := v.Check(e); err != nil {
					t.Fatalf("event %d: %v", i, err)
				}
			}
			err := v.Check(events[last])
			got, ok := errors.AsType[*OrderError](err)
			if !ok || got.Rule != tt.wantRule || got.ID != tt.wantID {
				t.Fatalf("error %v, want rule %s for %q", err, tt.wantRule, tt.wantID)
			}
			if text := got.Error(); !strings.Contains(text, string(got.Type)) || !strings.Contains(text, got.ID) || !strings.Contains(text, got.Detail) {
				t.Errorf("Error() = %q, want the type, the ID and the detail", text)
			}
		})
	}
}

// TestRefusalDoesNotChangeVerifier: a guard refuses an event and continues with a corrected one.
func TestRefusalDoesNotChangeVerifier(t *testing.T) {
	t.Parallel()
	var v Verifier
	for _, e := range script(t, "run; S m@s; TS c<m; ST a") {
		if err := v.Check(e); err != nil {
			t.Fatal(err)
		}
	}
	before := v.Open()
	for _, e := range script(t, "fin; S m; C m@u; TE c@u; SF a@u; run; E n; SZ s") {
		if v.Check(e) == nil {
			t.Fatalf("Check of %s: got no error, want one", e.EventType())
		}
	}
	if diff := cmp.Diff(before, v.Open()); diff != "" {
		t.Errorf("open items changed (-want +got):\n%s", diff)
	}
	for _, e := range script(t, "SF a; TE c; E m; fin") {
		if err := v.Check(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVerifierOpen(t *testing.T) {
	t.Parallel()
	var v Verifier
	for _, e := range script(t, "run; SA s; ST a@s; RS r; S m@s; TS c<m; RMS r; S n; E n") {
		if err := v.Check(e); err != nil {
			t.Fatal(err)
		}
	}
	want := []OpenItem{
		{EventSubagentStarted, "s", ""},
		{EventStepStarted, "a", "s"},
		{EventReasoningStart, "r", ""},
		{EventTextMessageStart, "m", "s"},
		{EventToolCallStart, "c", "s"},
		{EventReasoningMessageStart, "r", ""},
	}
	if diff := cmp.Diff(want, v.Open()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestVerifierKnowsOwnersOfInput(t *testing.T) {
	t.Parallel()
	var v Verifier
	input := &RunAgentInput{Messages: []Message{
		{ID: "m", Role: RoleAssistant, SubagentRunID: "s", ToolCalls: []ToolCall{{ID: "c"}}},
		{ID: "r", Role: RoleReasoning, SubagentRunID: "s"},
		{ID: "a", Role: RoleActivity, SubagentRunID: "s"},
	}}
	if err := v.Check(&RunStarted{Input: input}); err != nil {
		t.Fatal(err)
	}
	for _, e := range script(t, "S m@u; TS c@u; RMS r@u; AD a@u") {
		if got, ok := errors.AsType[*OrderError](v.Check(e)); !ok || got.Rule != RuleOwner {
			t.Errorf("%s: %v, want a refusal by owner", e.EventType(), got)
		}
	}
}
