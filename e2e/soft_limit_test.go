package e2e

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

const frugal = "/v1/agents/frugal/runs"

// toils lets the model work for as many turns as anybody lets it, of 60 tokens each.
func toils(t *testing.T, prompt string) {
	t.Helper()
	var turns []fixture
	for range 6 {
		turns = append(turns, fixture{Response: response{
			ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"1+1"}`}}, Usage: &tokens{50, 10, 60},
		}})
	}
	sharedModel.attempts(t, prompt, turns...)
}

// asksBeyond checks a question about tokens.
func asksBeyond(t *testing.T, q interrupt, message string) {
	t.Helper()
	if q.Reason != "tool_call" || q.Message != message || q.ToolCallID == "" || !strings.Contains(string(q.ResponseSchema), "editedArgs") {
		t.Errorf("people are asked %+v, want %q", q, message)
	}
}

const (
	firstAsked  = "The run has used 120 tokens. May it go on, up to 220 tokens?"
	secondAsked = "The run has used 240 tokens. May it go on, up to 250 tokens?"
)

// wantError holds that a run has ended with a code.
func wantError(t *testing.T, f *follower, code string) {
	t.Helper()
	if last := f.events[len(f.events)-1]; last.Type != "RUN_ERROR" || last.member("code") != code {
		t.Errorf("the run ended with %s, want %s", last.Data, code)
	}
}

// A run that has passed a soft limit ends with a question, which outlives the process, like any
// other. Once approved, by whichever way, it goes on from what it has used; then the hard limit
// ends it.
func TestSoftLimit(t *testing.T) {
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	prompt := say("Toil.")
	toils(t, prompt)
	in := newInput(prompt)
	question := interruptsOf(t, p.runAgent(t, frugal, in))[0]
	asksBeyond(t, question, firstAsked)
	awaitType(t, p.endpoint, in, runs.TypeParked)
	p.kill()
	p.start(t)
	waits := p.pending(t, "?agent=frugal", in.ThreadID).Items[0]
	if a := waits.Args; waits.ToolName != "approve" || a["limit"] != "tokens" || a["used"] != 120.0 || a["allowed"] != 220.0 {
		t.Errorf("the inbox has %+v", waits)
	}
	for body, pointer := range map[string]string{
		`{"decision":"edit","args":{"limit":"tokens","used":0,"allowed":9000}}`: "/args",
		`{"decision":"edit","args":{"allowed":120}}`:                            "/args/allowed",
		`{"decision":"answer","content":"yes"}`:                                 "/content",
		`{"decision":"approve","remember":true}`:                                "/remember",
	} {
		if status, answer := decide(t, p.endpoint, in.ThreadID, question.ID, body); status != http.StatusUnprocessableEntity || answer["pointer"] != pointer {
			t.Errorf("%s: %d %v", body, status, answer)
		}
	}
	if status, answer := decide(t, p.endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: %d %v", status, answer)
	}
	whole := p.followThread(t, in)
	whole.until(t, event.terminal)
	second := whole.untilAsked(t, "tool_call")[0]
	whole.cut()
	asksBeyond(t, second, secondAsked)
	then := in
	then.RunID, then.Resume = "run-2", []any{map[string]any{"interruptId": second.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	last := p.followAgent(t, frugal, then)
	last.finish(t)
	wantError(t, last, "limit_tokens")
	calls := sharedModel.calls(t, prompt)
	if len(calls) != 5 {
		t.Errorf("the model was called %d times, want five of 60 tokens for 250", len(calls))
	}
	for _, m := range calls[len(calls)-1].Body.Messages {
		for _, c := range m.ToolCalls {
			if c.Function.Name != "calculate" {
				t.Errorf("the model was told of a call of %s", c.Function.Name)
			}
		}
	}
}

// Who rejects ends the run, with the code of the limit and for a reason that stands in the
// conversation.
func TestSoftLimitRejected(t *testing.T) {
	t.Parallel()
	prompt := say("Toil.")
	toils(t, prompt)
	in := newInput(prompt)
	question := interruptsOf(t, shared.runAgent(t, frugal, in))[0]
	why := say("too dear")
	if status, answer := decide(t, shared.endpoint, in.ThreadID, question.ID, `{"decision":"reject","reason":"`+why+`"}`); status != http.StatusOK {
		t.Fatalf("reject: %d %v", status, answer)
	}
	whole := shared.followThread(t, in)
	whole.until(t, event.terminal)
	result := whole.until(t, func(e event) bool { return e.Type == "TOOL_CALL_RESULT" })
	if !strings.Contains(result.member("content"), why) {
		t.Errorf("the question came to %s", result.Data)
	}
	whole.until(t, event.terminal)
	wantError(t, whole, "limit_tokens")
	whole.cut()
	if n := len(sharedModel.calls(t, prompt)); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
	// The thread goes on, and what comes next counts from the beginning.
	next, done := say("Are you there?"), say("Yes.")
	sharedModel.answer(t, fixture{Match: match{UserMessage: next}, Response: response{Content: done, Usage: &tokens{90, 5, 95}}})
	f := shared.followAgent(t, frugal, in.after("run-2", "reject", user(next)))
	f.finish(t)
	wantOutcome(t, f, "success")
}

// A run that is held asks in place, and its question outlives the process. Who lets it go on may
// say how far.
func TestSoftLimitHeld(t *testing.T) {
	p := startPerdure(t)
	prompt := say("Toil.")
	toils(t, prompt)
	in := newInput(prompt).held()
	f := p.followAgent(t, frugal, in)
	first := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
	asksBeyond(t, first, firstAsked)
	p.kill()
	p.start(t)
	for _, body := range []string{`{"decision":"edit","args":{"allowed":170}}`, `{"decision":"edit","args":{"used":120,"allowed":170}}`} { // the same, twice
		if status, answer := decide(t, p.endpoint, in.ThreadID, first.ID, body); status != http.StatusOK {
			t.Fatalf("edit: %d %v", status, answer)
		}
	}
	second := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
	asksBeyond(t, second, "The run has used 180 tokens. May it go on, up to 250 tokens?")
	if status, answer := decide(t, p.endpoint, in.ThreadID, second.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: %d %v", status, answer)
	}
	f.finish(t)
	wantError(t, f, "limit_tokens")
	if n := len(sharedModel.calls(t, prompt)); n != 5 {
		t.Errorf("the model was called %d times", n)
	}
}

// A pipeline asks before the next of its agents, and before branches; who does not let it go on has
// it compensate for what it has done.
func TestSoftLimitOfSteps(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]string{
		"to the end": {"approve", "approve"}, "no further": {"reject"}, "no branches": {"approve", "reject"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, holds := range []bool{false, true} {
				topic := say("this.")
				said := []string{"Plan ", "Write ", "Review once ", "Review twice "}
				for _, s := range said {
					sharedModel.answerWith(t, s+topic, say("It is so."))
				}
				in := newInput(topic)
				if holds {
					in = in.held()
				}
				f := shared.followAgent(t, "/v1/agents/thrifty/runs", in)
				if !holds {
					f.finish(t)
					f = shared.followThread(t, in)
				}
				for _, d := range decisions {
					var q interrupt
					if holds {
						q = custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
					} else {
						q = f.untilAsked(t, "tool_call")[0]
					}
					if status, answer := decide(t, shared.endpoint, in.ThreadID, q.ID, `{"decision":"`+d+`"}`); status != http.StatusOK {
						t.Fatalf("%s: %d %v", d, status, answer)
					}
				}
				f.until(t, event.terminal)
				f.cut()
				undone := slices.ContainsFunc(f.events, func(e event) bool { return e.Type == "TOOL_CALL_RESULT" && e.member("content") == "9" })
				if rejected := slices.Contains(decisions, "reject"); rejected {
					wantError(t, f, "limit_turns")
					if !undone {
						t.Error("what was booked is booked")
					}
				} else {
					wantOutcome(t, f, "success")
				}
				made := 0
				for _, s := range said {
					made += len(sharedModel.calls(t, s+topic))
				}
				if want := map[string]int{"to the end": 4, "no further": 1, "no branches": 2}[name]; made != want {
					t.Errorf("the model was called %d times, want %d", made, want)
				}
			}
		})
	}
}
