package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// wantRule checks the protocol rule that an error is about.
func wantRule(t *testing.T, err error, rule Rule) {
	t.Helper()
	if rule == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if got, ok := errors.AsType[*OrderError](err); !ok || got.Rule != rule {
		t.Errorf("error %v, want rule %s", err, rule)
	}
}

// TestGuardRefuses: a producer may not send some events that clients tolerate.
func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	finish := func(o *Outcome) *RunFinished { return &RunFinished{ThreadID: "t", RunID: "r", Outcome: o} }
	for name, tt := range map[string]struct {
		before   string
		event    Event
		wantRule Rule
	}{
		"an order that clients refuse":      {"run; S m", &RunFinished{ThreadID: "t", RunID: "r"}, RuleOpenAtFinish},
		"an unknown event":                  {"run", &UnknownEvent{Type: "FUTURE"}, RuleUndefined},
		"an undescribed member":             {"run", &Custom{BaseEvent: BaseEvent{Unknown: map[string]json.RawMessage{"x": []byte("1")}}}, RuleUndefined},
		"an undescribed outcome":            {"run", finish(&Outcome{Type: "paused"}), RuleUndefined},
		"an undescribed operation":          {"run", &StateDelta{Delta: []byte(`[{"op":"increment","path":"/a"}]`)}, RuleUndefined},
		"an unsupported version":            {"err", &RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: "1.2"}, RuleVersion},
		"an invalid version":                {"err", &RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: "one"}, RuleVersion},
		"the end of another run":            {"run", &RunFinished{ThreadID: "t", RunID: "other"}, RuleRunIDs},
		"the end on another thread":         {"run", &RunFinished{ThreadID: "other", RunID: "r"}, RuleRunIDs},
		"two interrupts of one id":          {"run", finish(&Outcome{Type: OutcomeInterrupt, Interrupts: []Interrupt{{ID: "i"}, {ID: "i"}}}), RuleInterruptIDs},
		"a pending call that was answered":  {"run; TS c; TE c; TR c", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"c"}}), RulePendingToolCalls},
		"an unnamed pending call":           {"run; TS c; TE c", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{}}), RulePendingToolCalls},
		"pending calls out of order":        {"run; TS c; TE c; TS d; TE d", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"d", "c"}}), RulePendingToolCalls},
		"pending calls of the run before":   {"run; TS c; TE c; fin; run", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"c"}}), RulePendingToolCalls},
		"exactly the pending calls":         {"run; TS c; TE c; TS d; TE d; TR c; TS c; TE c; cc e<f", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"d", "e"}}), ""},
		"pending calls of a snapshot":       {"run", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"shown"}}), ""},
		"answered calls of a snapshot":      {"run", finish(&Outcome{Type: OutcomeSuccess, PendingToolCallIDs: []string{"answered"}}), RulePendingToolCalls},
		"pending calls that are not stated": {"run; TS c; TE c", finish(&Outcome{Type: OutcomeSuccess}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g Guard
			for _, e := range script(t, tt.before) {
				if err := g.Check(e); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(name, "snapshot") {
				calls := []ToolCall{{ID: "old"}, {ID: "answered"}, {ID: "shown"}}
				shown := &MessagesSnapshot{Messages: []Message{{ID: "m", Role: RoleAssistant, ToolCalls: calls}, {ID: "r", Role: RoleTool, ToolCallID: "answered"}}}
				if err := g.Check(shown); err != nil {
					t.Fatal(err)
				}
			}
			wantRule(t, g.Check(tt.event), tt.wantRule)
		})
	}
}

func TestGuardSeesTruncatedStreams(t *testing.T) {
	t.Parallel()
	for stream, rule := range map[string]Rule{
		"run": RuleTruncated, "run; S m; C m": RuleTruncated, "run; fin; run": RuleTruncated,
		"run; fin": "", "run; err": "", "err": "", "run; fin; err": "",
	} {
		var g Guard
		for _, e := range script(t, stream) {
			if err := g.Check(e); err != nil {
				t.Fatal(err)
			}
		}
		wantRule(t, g.End(), rule)
	}
	wantRule(t, new(Guard).End(), RuleTruncated)
}

// TestResumedGuard: a stream that begins after a cursor continues the items that were opened before
// it.
func TestResumedGuard(t *testing.T) {
	t.Parallel()
	for stream, rule := range map[string]Rule{
		"C m; E m; TA c; TE c; RMC r; RME r; RE r; SF a; SF b@s; SZ s; fin": "",
		"E m; S m; C m; E m; fin; run; S m; E m; fin":                       "",
		"SF a; ST a; SF a; SF a@s; fin":                                     "",
		"MS x; TE c; fin":                                                   "", // a snapshot repeats a call before the call is closed
		"SA u<s; SZ u; TR c; raw; err":                                      "",
		"E m; C m":                                                          RuleNotOpen,
		"C m; fin":                                                          RuleOpenAtFinish,
		"C m; S m":                                                          RuleAlreadyOpen,
		"C m@s; E m@u":                                                      RuleOwner,
		"SF a; SF a":                                                        RuleNotOpen,
		"SZ s; SZ s":                                                        RuleNotOpen,
		"run":                                                               RuleRunOpen,
		"fin; C m":                                                          RuleAfterTerminal,
		"fin; run; C m":                                                     RuleNotOpen,
	} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			g := ResumedGuard()
			events := script(t, stream)
			for _, e := range events[:len(events)-1] {
				if err := g.Check(e); err != nil {
					t.Fatal(err)
				}
			}
			wantRule(t, g.Check(events[len(events)-1]), rule)
		})
	}
}

// TestGuardDoesNotChangeEvent: a rejected event is not changed, so its producer can report it as it
// was.
func TestGuardDoesNotChangeEvent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"CUSTOM","name":"n","value":1,"x":1}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused"}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"increment","path":"/a"}]}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"oracle","content":"x"},{"id":"u","role":"user","content":"y","x":1}]}`,
	} {
		e, err := Decode([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		before := fmt.Sprintf("%+v", e)
		whole, _ := json.Marshal(e)
		if err := ResumedGuard().Check(e); err == nil {
			t.Errorf("Check of %s: got no error, want one", text)
		}
		if after, _ := json.Marshal(e); string(after) != string(whole) || fmt.Sprintf("%+v", e) != before {
			t.Errorf("event %s after Check = %s, want it unchanged", text, after)
		}
	}
}
