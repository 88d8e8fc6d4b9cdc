package models

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

const frugal = "/v1/agents/frugal/runs"

// scriptTurns scripts turns of 60 tokens each, without an end.
func scriptTurns(t *testing.T, prompt string) {
	t.Helper()
	var turns []kit.Fixture
	for range 6 {
		turns = append(turns, kit.Fixture{Response: kit.Response{
			ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"1+1"}`}}, Usage: &kit.Tokens{Input: 50, Output: 10, Total: 60},
		}})
	}
	kit.SharedModel.AnswerInOrder(t, prompt, turns...)
}

// wantTokenQuestion checks an interrupt about a token limit.
func wantTokenQuestion(t *testing.T, q kit.Interrupt, message string) {
	t.Helper()
	if q.Reason != "tool_call" || q.Message != message || q.ToolCallID == "" || !strings.Contains(string(q.ResponseSchema), "editedArgs") {
		t.Errorf("the interrupt is %+v, want %q", q, message)
	}
}

const (
	firstAsked  = "The run has used 120 tokens. May it continue, up to 220 tokens?"
	secondAsked = "The run has used 240 tokens. May it continue, up to 250 tokens?"
)

// wantError checks that a run ended with a code.
func wantError(t *testing.T, f *kit.Follower, code string) {
	t.Helper()
	if last := f.Events[len(f.Events)-1]; last.Type != "RUN_ERROR" || last.Member("code") != code {
		t.Errorf("the run ended with %s, want %s", last.Data, code)
	}
}

// TestSoftLimit: a run that exceeds a soft limit ends with an interrupt, which survives a kill.
// Once approved, over any channel, the run continues from its usage, and the hard limit ends it.
func TestSoftLimit(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt := kit.Marked("Toil.")
	scriptTurns(t, prompt)
	in := kit.NewInput(prompt)
	question := kit.InterruptsOf(t, p.RunAgent(t, frugal, in))[0]
	wantTokenQuestion(t, question, firstAsked)
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	p.Kill()
	p.Start(t)
	waits := p.AwaitPending(t, "?agent=frugal", in.ThreadID).Items[0]
	if a := waits.Args; waits.ToolName != "approve" || a["limit"] != "tokens" || a["used"] != 120.0 || a["allowed"] != 220.0 {
		t.Errorf("approval of the inbox = %+v, want 120 of 220 tokens", waits)
	}
	for body, pointer := range map[string]string{
		`{"decision":"edit","args":{"limit":"tokens","used":0,"allowed":9000}}`: "/args",
		`{"decision":"edit","args":{"allowed":120}}`:                            "/args/allowed",
		`{"decision":"answer","content":"yes"}`:                                 "/content",
		`{"decision":"approve","remember":true}`:                                "/remember",
	} {
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, question.ID, body); status != http.StatusUnprocessableEntity || answer["pointer"] != pointer {
			t.Errorf("%s: got %d %v, want %d at %s", body, status, answer, http.StatusUnprocessableEntity, pointer)
		}
	}
	whole := p.FollowThread(t, in)
	whole.Until(t, kit.Event.Terminal) // before the decision: a later reader begins with the next run
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	second := whole.UntilInterrupt(t, "tool_call")[0]
	whole.Cut()
	wantTokenQuestion(t, second, secondAsked)
	then := in
	then.RunID, then.Resume = "run-2", []any{map[string]any{"interruptId": second.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	last := p.FollowAgent(t, frugal, then)
	last.Finish(t)
	wantError(t, last, "limit_tokens")
	calls := kit.SharedModel.Calls(t, prompt)
	if len(calls) != 5 {
		t.Errorf("the model was called %d times, want five of 60 tokens for 250", len(calls))
	}
	for _, m := range calls[len(calls)-1].Body.Messages {
		for _, c := range m.ToolCalls {
			if c.Function.Name != "calculate" {
				t.Errorf("call sent to the model = %s, want calculate", c.Function.Name)
			}
		}
	}
}

// TestSoftLimitRejected: a rejection ends the run with the limit's code. Its reason is in the
// conversation.
func TestSoftLimitRejected(t *testing.T) {
	t.Parallel()
	prompt := kit.Marked("Toil.")
	scriptTurns(t, prompt)
	in := kit.NewInput(prompt)
	question := kit.InterruptsOf(t, kit.Shared.RunAgent(t, frugal, in))[0]
	why := kit.Marked("too dear")
	whole := kit.Shared.FollowThread(t, in)
	whole.Until(t, kit.Event.Terminal)
	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"reject","reason":"`+why+`"}`); status != http.StatusOK {
		t.Fatalf("reject: got %d %v, want %d", status, answer, http.StatusOK)
	}
	result := whole.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
	if !strings.Contains(result.Member("content"), why) {
		t.Errorf("result = %s, want the reason %q", result.Data, why)
	}
	whole.Until(t, kit.Event.Terminal)
	wantError(t, whole, "limit_tokens")
	whole.Cut()
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 {
		t.Errorf("number of model calls = %d, want 2", n)
	}
	// The thread's next run counts from zero.
	next, done := kit.Marked("Are you there?"), kit.Marked("Yes.")
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: next}, Response: kit.Response{Content: done, Usage: &kit.Tokens{Input: 90, Output: 5, Total: 95}}})
	f := kit.Shared.FollowAgent(t, frugal, in.NextRun("run-2", "reject", kit.UserMessage(next)))
	f.Finish(t)
	kit.WantOutcome(t, f, "success")
}

// TestSoftLimitHeld: a held run asks within the run, and its interrupt survives a kill. The
// approver may set a limit.
func TestSoftLimitHeld(t *testing.T) {
	p := kit.Setup(t)
	prompt := kit.Marked("Toil.")
	scriptTurns(t, prompt)
	in := kit.NewInput(prompt).Hold()
	f := p.FollowAgent(t, frugal, in)
	first := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	wantTokenQuestion(t, first, firstAsked)
	p.Kill()
	p.Start(t)
	for _, body := range []string{`{"decision":"edit","args":{"allowed":170}}`, `{"decision":"edit","args":{"used":120,"allowed":170}}`} { // the same, twice
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, first.ID, body); status != http.StatusOK {
			t.Fatalf("edit: got %d %v, want %d", status, answer, http.StatusOK)
		}
	}
	second := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	wantTokenQuestion(t, second, "The run has used 180 tokens. May it continue, up to 250 tokens?")
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, second.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	f.Finish(t)
	wantError(t, f, "limit_tokens")
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 5 {
		t.Errorf("number of model calls = %d, want 5", n)
	}
}

// TestSoftLimitOfSteps: a pipeline asks before its next agent, and before branches. A rejection
// makes it compensate.
func TestSoftLimitOfSteps(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]string{
		"to the end": {"approve", "approve"}, "no further": {"reject"}, "no branches": {"approve", "reject"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, holds := range []bool{false, true} {
				topic := kit.Marked("this.")
				said := []string{"Plan ", "Write ", "Review once ", "Review twice "}
				for _, s := range said {
					kit.SharedModel.AnswerWith(t, s+topic, kit.Marked("It is so."))
				}
				in := kit.NewInput(topic)
				if holds {
					in = in.Hold()
				}
				f := kit.Shared.FollowAgent(t, "/v1/agents/thrifty/runs", in)
				if !holds {
					f.Finish(t)
					f = kit.Shared.FollowThread(t, in)
				}
				for _, d := range decisions {
					var q kit.Interrupt
					if holds {
						q = kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
					} else {
						q = f.UntilInterrupt(t, "tool_call")[0]
					}
					if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, q.ID, `{"decision":"`+d+`"}`); status != http.StatusOK {
						t.Fatalf("%s: got %d %v, want %d", d, status, answer, http.StatusOK)
					}
				}
				f.Until(t, kit.Event.Terminal)
				f.Cut()
				undone := slices.ContainsFunc(f.Events, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" && e.Member("content") == "9" })
				if rejected := slices.Contains(decisions, "reject"); rejected {
					wantError(t, f, "limit_turns")
					if !undone {
						t.Error("compensation of the booking: got none, want one")
					}
				} else {
					kit.WantOutcome(t, f, "success")
				}
				made := 0
				for _, s := range said {
					made += len(kit.SharedModel.Calls(t, s+topic))
				}
				if want := map[string]int{"to the end": 4, "no further": 1, "no branches": 2}[name]; made != want {
					t.Errorf("the model was called %d times, want %d", made, want)
				}
			}
		})
	}
}
