package approvals

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

const asker = "/v1/agents/asker/runs"

// scriptQuestions makes the model call tools that ask, and answer with then when it has the
// results.
func scriptQuestions(t *testing.T, prompt, then string, calls ...kit.ModelCall) {
	t.Helper()
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: then}})
}

// questionCall returns a model call that asks the user a question.
func questionCall(question string) kit.ModelCall {
	return kit.ModelCall{Name: "ask_user", Arguments: fmt.Sprintf(`{"question":%q}`, question)}
}

// TestToolQuestion: stock clients of both generations answer a question that a tool asks in the
// middle of its call. Other calls run meanwhile.
func TestToolQuestion(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		prompt, done, blue := kit.Marked("Paint it."), kit.Marked("Painted."), kit.Marked("blue")
		scriptQuestions(t, prompt, done, questionCall("Which color?"), kit.ModelCall{Name: "calculate", Arguments: `{"expression":"1+1"}`})
		d := g.Drive(t, kit.Shared, kit.Script{
			URL: kit.Shared.URL(asker), Messages: []kit.Message{kit.UserMessage(prompt)},
			Runs: []kit.ScriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"answer": blue}}},
		})
		ends := d.Finish(t)
		if n := len(ends[0].Messages); n != 3 || ends[0].Messages[2].Content != "2" {
			t.Fatalf("messages of the client at the interrupt = %+v, want 3 with the result 2", ends[0].Messages)
		}
		last := ends[1].Messages
		if n := len(last); n != 5 || last[n-1].Content != done {
			t.Errorf("messages of the client at the end = %+v, want 5 with the answer last", last)
		}
		got := kit.ToolResultsSent(t, prompt)
		slices.Sort(got)
		if !slices.Equal(got, []string{"2", blue}) {
			t.Errorf("results sent to the model = %q, want 2 and %q", got, blue)
		}
	})
}

// TestToolAnswersAreValidated: an answer that does not match the tool's schema is refused and has
// no effect. The tool gets the cancellation of a question.
func TestToolAnswersAreValidated(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Paint it."), kit.Marked("Painted.")
	scriptQuestions(t, prompt, done, kit.ModelCall{Name: "ask_user", Arguments: `{"question":"Which color?","choices":["blue","green"]}`}, questionCall("How?"))
	first := kit.NewInput(prompt)
	asked := kit.Shared.FollowAgent(t, asker, first)
	asked.Finish(t)
	questions := kit.InterruptsOf(t, asked.Events)
	if len(questions) != 2 || questions[0].Reason != "input_required" || questions[0].Message != "Which color?" ||
		!strings.Contains(string(questions[0].ResponseSchema), `"enum":["blue","green"]`) || !slices.Contains(kit.ToolCallIDs(asked.Events), questions[0].ToolCallID) {
		t.Fatalf("interrupts = %+v, want two questions with their schemas", questions)
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
		resp, err := kit.Shared.Post(t.Context(), asker, in)
		if p := kit.ReadProblem(t, resp, err); p.Code != "invalid_answer" || p.Status != http.StatusUnprocessableEntity || p.Pointer != pointer {
			t.Errorf("refused with %+v, want %s", p, pointer)
		}
	}
	for body, want := range map[string]int{
		`{"decision":"approve"}`: 422, `{"decision":"edit","args":{}}`: 422, `{"decision":"answer"}`: 422, `{"decision":"answer","content":{"answer":7}}`: 422,
	} {
		if status, a := kit.Decide(t, kit.Shared.Endpoint, first.ThreadID, questions[0].ID, body); status != want {
			t.Errorf("%s: %d %v, want %d", body, status, a, want)
		}
	}
	then := first
	then.RunID, then.Resume = "run-2", []any{answers(0, map[string]any{"answer": "blue"}), given}
	f := kit.Shared.FollowAgent(t, asker, then)
	f.Finish(t)
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"The question was cancelled without an answer.", "blue"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"The question was cancelled without an answer.", "blue"})
	}
	kit.WantSameEvents(t, "the same answer again", f.Events, kit.Shared.RunAgent(t, asker, then))
}

// TestToolQuestionWithoutClient: a question is answered over REST while no client is connected, the
// process is killed before and after the answer, and the thread is parked. The tool gets the answer
// once. The inbox lists the question. A call that needs approval asks after that, and each question
// is asked once.
func TestToolQuestionWithoutClient(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Paint it."), kit.Marked("Painted.")
	scriptQuestions(t, prompt, done, questionCall("approve me: which color?"), kit.ModelCall{Name: "confirm", Arguments: `{"question":"Paint?"}`})
	in := kit.NewInput(prompt)
	asked := p.FollowAgent(t, asker, in)
	asked.Finish(t)
	questions := kit.InterruptsOf(t, asked.Events)
	if len(questions) != 2 || questions[0].Reason != "tool_call" || questions[1].Reason != "confirmation" {
		t.Fatalf("interrupts = %+v, want an approval and a confirmation", questions)
	}
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	p.Kill()
	p.Start(t)
	for id, body := range map[string]string{questions[0].ID: `{"decision":"approve"}`, questions[1].ID: `{"decision":"answer","content":{"approved":true}}`} {
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, id, body); status != http.StatusOK || a["repeated"] != nil {
			t.Errorf("%s: got %d %v, want %d as new", body, status, a, http.StatusOK)
		}
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, id, body); status != http.StatusOK || a["repeated"] != true {
			t.Errorf("%s again: got %d %v, want %d as a repeat", body, status, a, http.StatusOK)
		}
	}
	second := p.FollowThread(t, in).UntilInterrupt(t, "input_required")
	if len(second) != 1 || second[0].Reason != "input_required" || second[0].ID == questions[0].ID || second[0].ToolCallID != questions[0].ToolCallID {
		t.Fatalf("second interrupts = %+v, want a question of the same call", second)
	}
	if listed := p.AwaitInboxItem(t, in, second[0].ID); listed["reason"] != "input_required" || listed["message"] != "approve me: which color?" || listed["toolName"] != "ask_user" || listed["responseSchema"] == nil {
		t.Errorf("approval of the inbox = %v, want the question of ask_user", listed)
	}
	p.Kill()
	p.Start(t)
	if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, second[0].ID, `{"decision":"reject","reason":"no paint"}`); status != http.StatusOK {
		t.Errorf("reject: got %d %v, want %d", status, a, http.StatusOK)
	}
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{`The user declined to answer the question. Reason: "no paint"`, `{"approved":true}`}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{`The user declined to answer the question. Reason: "no paint"`, `{"approved":true}`})
	}
	if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, second[0].ID, `{"decision":"answer","content":{"answer":"blue"}}`); status != http.StatusConflict {
		t.Errorf("another answer at the end: got %d %v, want %d", status, a, http.StatusConflict)
	}
}

// TestToolQuestionInHeldRun: a held run asks in a custom event for each question, and ends once.
func TestToolQuestionInHeldRun(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Paint it."), kit.Marked("Painted.")
	scriptQuestions(t, prompt, done, questionCall("approve me: which color?"), questionCall("How often?"))
	in := kit.NewInput(prompt).Hold()
	f := kit.Shared.FollowAgent(t, asker, in)
	for range 3 {
		q := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
		body := `{"decision":"answer","content":{"answer":"to: ` + q.Message + `"}}`
		if q.Reason == "tool_call" {
			body = `{"decision":"approve"}`
		}
		if status, a := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, q.ID, body); status != http.StatusOK {
			t.Errorf("%s: got %d %v, want %d", body, status, a, http.StatusOK)
		}
	}
	f.Finish(t)
	kit.WantOutcome(t, f, "success")
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if !slices.Equal(got, []string{"to: How often?", "to: approve me: which color?"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"to: How often?", "to: approve me: which color?"})
	}
	if n := count(f.Events, "TOOL_CALL_RESULT"); n != 2 {
		t.Errorf("number of shown results = %d, want 2", n)
	}
}

// TestToolQuestionOfSubagent: a question of a subagent's tool is an interrupt of the run, and the
// subagent continues with the answer.
func TestToolQuestionOfSubagent(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		prompt, task, done, blue := kit.Marked("See that it is painted."), kit.Marked("Paint it."), kit.Marked("It is."), kit.Marked("blue")
		hand, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		scriptQuestions(t, prompt, done, kit.ModelCall{Name: "asker", Arguments: string(hand)})
		scriptQuestions(t, task, kit.Marked("Painted."), questionCall("Which color?"))
		d := g.Drive(t, kit.Shared, kit.Script{
			URL: kit.Shared.URL("/v1/agents/asks-askers/runs"), Messages: []kit.Message{kit.UserMessage(prompt)},
			Runs: []kit.ScriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"answer": blue}}},
		})
		ends := d.Finish(t)
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != done {
			t.Errorf("last message of the client = %q, want %q", last.Content, done)
		}
		if got := kit.ToolResultsSent(t, task); !slices.Equal(got, []string{blue}) {
			t.Errorf("results sent to the subagent = %q, want %q", got, []string{blue})
		}
	})
}

// TestToolQuestionForLegacyClient: a client that knows only on_interrupt gets the question in that
// event, and answers by a command under the same run id.
func TestToolQuestionForLegacyClient(t *testing.T) {
	t.Parallel()
	prompt, done, blue := kit.Marked("Paint it."), kit.Marked("Painted."), kit.Marked("blue")
	scriptQuestions(t, prompt, done, questionCall("Which color?"))
	in := kit.NewInput(prompt)
	const legacy = "/v1/agents/asker-legacy/runs"
	events := kit.Shared.RunAgent(t, legacy, in)
	value := kit.CustomValue[string](t, events[len(events)-2], "on_interrupt")
	var asked kit.Interrupt
	if err := json.Unmarshal([]byte(value), &asked); err != nil || asked.ID != kit.InterruptsOf(t, events)[0].ID || asked.Message != "Which color?" {
		t.Fatalf("question = %s (%v), want that of the interrupt", value, err)
	}
	in.ForwardedProps = map[string]any{"command": map[string]any{"resume": `{"answer":"` + blue + `"}`, "interruptEvent": value}}
	events = kit.Shared.RunAgent(t, legacy, in)
	if kit.Outcome(events[len(events)-1]) != "success" || events[0].Member("runId") != in.RunID {
		t.Errorf("end of the run = %s, want success of the first run", events[len(events)-1].Data)
	}
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{blue}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{blue})
	}
}
