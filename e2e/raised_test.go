package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

const asker = "/v1/agents/asker/runs"

// asksUser lets the model call tools that ask, and say something when it has the results.
func asksUser(t *testing.T, prompt, then string, calls ...modelCall) {
	t.Helper()
	yes, no := true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: then}})
}

func askUser(question string) modelCall {
	return modelCall{Name: "ask_user", Arguments: fmt.Sprintf(`{"question":%q}`, question)}
}

// Stock clients of both generations are asked by a tool in the middle of its call, and answer; what
// nobody asks about is done meanwhile.
func TestAToolAsks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		prompt, done, blue := say("Paint it."), say("Painted."), say("blue")
		asksUser(t, prompt, done, askUser("Which color?"), modelCall{Name: "calculate", Arguments: `{"expression":"1+1"}`})
		d := g.drive(t, shared, script{
			URL: shared.url(asker), Messages: []message{user(prompt)},
			Runs: []scriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"answer": blue}}},
		})
		ends := d.finish(t)
		if n := len(ends[0].Messages); n != 3 || ends[0].Messages[2].Content != "2" {
			t.Fatalf("when it is asked the client has %+v", ends[0].Messages)
		}
		last := ends[1].Messages
		if n := len(last); n != 5 || last[n-1].Content != done {
			t.Errorf("at the end the client has %+v", last)
		}
		got := resultsOf(t, prompt)
		slices.Sort(got)
		if !slices.Equal(got, []string{"2", blue}) {
			t.Errorf("the model heard the results %q", got)
		}
	})
}

// An answer that does not fit the tool's schema is refused before anything happens; one that gives
// the question up is told to the tool.
func TestAnswersToAToolFit(t *testing.T) {
	t.Parallel()
	prompt, done := say("Paint it."), say("Painted.")
	asksUser(t, prompt, done, modelCall{Name: "ask_user", Arguments: `{"question":"Which color?","choices":["blue","green"]}`}, askUser("How?"))
	first := newInput(prompt)
	asked := shared.followAgent(t, asker, first)
	asked.finish(t)
	questions := interruptsOf(t, asked.events)
	if len(questions) != 2 || questions[0].Reason != "input_required" || questions[0].Message != "Which color?" ||
		!strings.Contains(string(questions[0].ResponseSchema), `"enum":["blue","green"]`) || !slices.Contains(callsOf(asked.events), questions[0].ToolCallID) {
		t.Fatalf("the questions are %+v", questions)
	}
	answers := func(n int, payload any) map[string]any {
		return map[string]any{"interruptId": questions[n].ID, "status": "resolved", "payload": payload}
	}
	given := map[string]any{"interruptId": questions[1].ID, "status": "cancelled"}
	for pointer, payload := range map[string]any{
		"/resume/0/payload/answer": map[string]any{"answer": "red"},
		"/resume/0/payload":        "blue",
	} {
		in := first
		in.RunID, in.Resume = "run-2", []any{answers(0, payload), given}
		resp, err := shared.post(t.Context(), asker, in)
		if p := refused(t, resp, err); p.Code != "invalid_answer" || p.Status != http.StatusUnprocessableEntity || p.Pointer != pointer {
			t.Errorf("refused with %+v, want %s", p, pointer)
		}
	}
	for body, want := range map[string]int{
		`{"decision":"approve"}`: 422, `{"decision":"edit","args":{}}`: 422, `{"decision":"answer"}`: 422, `{"decision":"answer","content":{"answer":7}}`: 422,
	} {
		if status, a := decide(t, shared.endpoint, first.ThreadID, questions[0].ID, body); status != want {
			t.Errorf("%s: %d %v, want %d", body, status, a, want)
		}
	}
	then := first
	then.RunID, then.Resume = "run-2", []any{answers(0, map[string]any{"answer": "blue"}), given}
	f := shared.followAgent(t, asker, then)
	f.finish(t)
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"Whoever was asked gave no answer.", "blue"}) {
		t.Errorf("the model heard %q", got)
	}
	same(t, "the same answer again", f.events, shared.runAgent(t, asker, then))
}

// A question is answered over REST while nobody is connected, the process is killed before and
// behind the answer, and the thread is parked: the tool hears the answer once. The inbox has the
// question. A call that people have to approve asks behind that, and nobody is asked twice.
func TestAToolAsksWithoutItsClient(t *testing.T) {
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	prompt, done := say("Paint it."), say("Painted.")
	asksUser(t, prompt, done, askUser("approve me: which color?"), modelCall{Name: "confirm", Arguments: `{"question":"Paint?"}`})
	in := newInput(prompt)
	asked := p.followAgent(t, asker, in)
	asked.finish(t)
	questions := interruptsOf(t, asked.events)
	if len(questions) != 2 || questions[0].Reason != "tool_call" || questions[1].Reason != "confirmation" {
		t.Fatalf("the questions are %+v", questions)
	}
	awaitType(t, p.endpoint, in, runs.TypeParked)
	p.kill()
	p.start(t)
	for id, body := range map[string]string{questions[0].ID: `{"decision":"approve"}`, questions[1].ID: `{"decision":"answer","content":{"approved":true}}`} {
		if status, a := decide(t, p.endpoint, in.ThreadID, id, body); status != http.StatusOK || a["repeated"] != nil {
			t.Errorf("%s: %d %v", body, status, a)
		}
		if status, a := decide(t, p.endpoint, in.ThreadID, id, body); status != http.StatusOK || a["repeated"] != true {
			t.Errorf("%s again: %d %v", body, status, a)
		}
	}
	second := p.followThread(t, in).untilAsked(t, "input_required")
	if len(second) != 1 || second[0].Reason != "input_required" || second[0].ID == questions[0].ID || second[0].ToolCallID != questions[0].ToolCallID {
		t.Fatalf("then it asks %+v", second)
	}
	if listed := p.inboxOf(t, in); listed["reason"] != "input_required" || listed["message"] != "approve me: which color?" || listed["toolName"] != "ask_user" || listed["responseSchema"] == nil {
		t.Errorf("the inbox has %v", listed)
	}
	p.kill()
	p.start(t)
	if status, a := decide(t, p.endpoint, in.ThreadID, second[0].ID, `{"decision":"reject","reason":"no paint"}`); status != http.StatusOK {
		t.Errorf("reject: %d %v", status, a)
	}
	f := p.followThread(t, in)
	f.untilSuccess(t)
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{`The person who was asked declined to answer. They said: "no paint"`, `{"approved":true}`}) {
		t.Errorf("the model heard %q", got)
	}
	if status, a := decide(t, p.endpoint, in.ThreadID, second[0].ID, `{"decision":"answer","content":{"answer":"blue"}}`); status != http.StatusConflict {
		t.Errorf("another answer at the end: %d %v", status, a)
	}
}

// inboxOf returns what waits on a thread, as soon as the inbox has it.
func (p *endpoint) inboxOf(t *testing.T, in input) map[string]any {
	t.Helper()
	for {
		resp, err := p.get(t.Context(), "/v1/approvals?thread="+in.ThreadID, "")
		if err != nil {
			t.Fatal(err)
		}
		var page struct{ Items []map[string]any }
		err = json.NewDecoder(resp.Body).Decode(&page)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > 0 {
			return page.Items[0]
		}
	}
}

// untilAsked reads a thread to the end of a run that asks something of a kind.
func (f *follower) untilAsked(t *testing.T, reason string) []interrupt {
	t.Helper()
	for {
		e, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if !e.terminal() {
			continue
		}
		if asked := interruptsOf(t, f.events); asked[0].Reason == reason {
			return asked
		}
	}
}

// A run that is held asks in a custom event, as often as there is a question, and ends once.
func TestAToolAsksInAHeldRun(t *testing.T) {
	t.Parallel()
	prompt, done := say("Paint it."), say("Painted.")
	asksUser(t, prompt, done, askUser("approve me: which color?"), askUser("How often?"))
	in := newInput(prompt).held()
	f := shared.followAgent(t, asker, in)
	for range 3 {
		q := custom[interrupt](t, f.until(t, isCustom), "perdure.approval")
		body := `{"decision":"answer","content":{"answer":"to: ` + q.Message + `"}}`
		if q.Reason == "tool_call" {
			body = `{"decision":"approve"}`
		}
		if status, a := decide(t, shared.endpoint, in.ThreadID, q.ID, body); status != http.StatusOK {
			t.Errorf("%s: %d %v", body, status, a)
		}
	}
	f.finish(t)
	wantOutcome(t, f, "success")
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"to: How often?", "to: approve me: which color?"}) {
		t.Errorf("the model heard %q", got)
	}
	if n := count(f.events, "TOOL_CALL_RESULT"); n != 2 {
		t.Errorf("%d results were shown", n)
	}
}

// The tool of a subagent asks: it is a question of the run, and the subagent goes on with the
// answer.
func TestAToolOfASubagentAsks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		prompt, task, done, blue := say("See that it is painted."), say("Paint it."), say("It is."), say("blue")
		hand, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		asksUser(t, prompt, done, modelCall{Name: "asker", Arguments: string(hand)})
		asksUser(t, task, say("Painted."), askUser("Which color?"))
		d := g.drive(t, shared, script{
			URL: shared.url("/v1/agents/asks-askers/runs"), Messages: []message{user(prompt)},
			Runs: []scriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"answer": blue}}},
		})
		ends := d.finish(t)
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != done {
			t.Errorf("at the end the client has %+v", last)
		}
		if got := resultsOf(t, task); !slices.Equal(got, []string{blue}) {
			t.Errorf("the subagent heard %q", got)
		}
	})
}

// A client that knows no interrupts but on_interrupt is asked by that, and answers by a command
// under the same run id.
func TestAToolAsksLegacyClients(t *testing.T) {
	t.Parallel()
	prompt, done, blue := say("Paint it."), say("Painted."), say("blue")
	asksUser(t, prompt, done, askUser("Which color?"))
	in := newInput(prompt)
	const legacy = "/v1/agents/asker-legacy/runs"
	events := shared.runAgent(t, legacy, in)
	value := custom[string](t, events[len(events)-2], "on_interrupt")
	var asked interrupt
	if err := json.Unmarshal([]byte(value), &asked); err != nil || asked.ID != interruptsOf(t, events)[0].ID || asked.Message != "Which color?" {
		t.Fatalf("it asks %s (%v)", value, err)
	}
	in.ForwardedProps = map[string]any{"command": map[string]any{"resume": `{"answer":"` + blue + `"}`, "interruptEvent": value}}
	events = shared.runAgent(t, legacy, in)
	if outcome(events[len(events)-1]) != "success" || events[0].member("runId") != in.RunID {
		t.Errorf("it goes on to %s", events[len(events)-1].Data)
	}
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{blue}) {
		t.Errorf("the model heard %q", got)
	}
}
