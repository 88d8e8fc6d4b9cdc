package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ids are ours to choose: tests compare what people and models see.
var ignoreIDs = cmp.Options{
	cmpopts.IgnoreFields(message{}, "ID", "ToolCallID"),
	cmpopts.IgnoreFields(toolCall{}, "ID"),
}

func wantMessages(t *testing.T, want, got []message) {
	t.Helper()
	if diff := cmp.Diff(want, got, ignoreIDs); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func says(text string) message { return message{Role: "assistant", Content: text} }

func callsTools(calls ...modelCall) message {
	m := message{Role: "assistant"}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{Type: "function", Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return m
}

func result(text string) message { return message{Role: "tool", Content: text} }

func TestText(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		question, answer := user(say("What is it?")), say("Grüße, 世界 🌍: a text of several chunks.")
		sharedModel.answer(t, fixture{Match: match{UserMessage: question.Content}, Response: response{Content: answer}, ChunkSize: 3})
		d, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Messages: []message{question}})
		wantMessages(t, []message{question, says(answer)}, ends[0].Messages)
		wantMessages(t, []message{says(answer)}, ends[0].NewMessages)
		want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"
		if got := d.types(0); got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if got := len(d.events(0, "TEXT_MESSAGE_CONTENT")); got < 3 {
			t.Errorf("the text came in %d pieces: it was not streamed", got)
		}
	})
}

func TestReasoning(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		question, thought, answer := user(say("Why?")), say("Because of this and that."), say("Because.")
		sharedModel.answer(t, fixture{Match: match{UserMessage: question.Content}, Response: response{Reasoning: thought, Content: answer}})
		_, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Messages: []message{question}})
		wantMessages(t, []message{question, {Role: "reasoning", Content: thought}, says(answer)}, ends[0].Messages)
	})
}

func TestServerTools(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	invented := say("")[:20]
	for name, tt := range map[string]struct {
		calls   []modelCall
		results []string
	}{
		"one": {
			calls:   []modelCall{{ID: "call_a", Name: "calculate", Arguments: `{"expression":"12*7"}`}},
			results: []string{"84"},
		},
		"two at once": {
			calls: []modelCall{
				{ID: "call_a", Name: "calculate", Arguments: `{"expression":"2**10"}`},
				{ID: "call_b", Name: "calculate", Arguments: `{"expression":"1/4"}`},
			},
			results: []string{"1024", "0.25"},
		},
		"one that fails": {
			calls:   []modelCall{{ID: "call_a", Name: "calculate", Arguments: `{"expression":"` + mark + ` + 1"}`}},
			results: []string{""},
		},
		"one with arguments that do not fit": {
			calls:   []modelCall{{ID: "call_a", Name: "calculate", Arguments: `{"` + mark + `":1}`}},
			results: []string{""},
		},
		"one that the model made up": {
			calls:   []modelCall{{ID: "call_a", Name: invented, Arguments: `{}`}},
			results: []string{""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				question, answer := user(say("Use your tools.")), say("Done.")
				sharedModel.answer(t,
					fixture{Match: match{UserMessage: question.Content, HasToolResult: &no}, Response: response{ToolCalls: tt.calls}},
					fixture{Match: match{UserMessage: question.Content, HasToolResult: &yes}, Response: response{Content: answer}})
				d, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Messages: []message{question}})

				got := ends[0].Messages
				want := []message{question, callsTools(tt.calls...)}
				for i, r := range tt.results {
					if r == "" && len(got) > 2+i { // a failure, in whatever words
						r = got[2+i].Content
					}
					want = append(want, result(r))
				}
				wantMessages(t, append(want, says(answer)), byCall(got))
				if n := len(d.events(0, "STEP_STARTED")); n != 3 {
					t.Errorf("%d steps, want model, tools, model", n)
				}
				heardResults(t, sharedModel.calls(t, question.Content), tt.calls, byCall(got))
			})
		})
	}
}

// byCall sorts tool results by the call that they answer: parallel ones come as they finish.
func byCall(messages []message) []message {
	order := map[string]int{}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			order[c.ID] = len(order) + 1
		}
	}
	slices.SortStableFunc(messages, func(a, b message) int {
		if a.Role != "tool" || b.Role != "tool" {
			return 0
		}
		return order[a.ToolCallID] - order[b.ToolCallID]
	})
	return messages
}

// heardResults checks that the model was told its own calls, under its own ids, with their results.
func heardResults(t *testing.T, calls []call, made []modelCall, shown []message) {
	t.Helper()
	if len(calls) != 2 {
		t.Fatalf("%d model calls, want 2", len(calls))
	}
	want, got := map[string]string{}, map[string]string{}
	for i, c := range made {
		want[c.ID] = shown[2+i].Content
	}
	for _, m := range calls[1].Body.Messages {
		if m.Role == "tool" {
			got[m.ToolCallID] = m.text()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results that the model heard (-want +got):\n%s", diff)
	}
}

// A run posted right behind the one before, on the same thread: the thread is free, and the model
// hears everything that was said.
func TestFollowUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		var (
			first, second = user(say("First?")), user(say("Second?"))
			one, two      = say("One."), say("Two.")
		)
		sharedModel.answerWith(t, first.Content, one)
		sharedModel.answerWith(t, second.Content, two)
		_, ends := g.talk(t, shared,
			scriptedRun{RunID: "run-1", Add: []message{first}},
			scriptedRun{RunID: "run-2", Add: []message{second}})
		wantMessages(t, []message{first, says(one), second, says(two)}, ends[1].Messages)
		calls := sharedModel.calls(t, second.Content)
		if len(calls) != 1 {
			t.Fatalf("%d model calls, want 1", len(calls))
		}
		wantHeard(t, calls[0], first.Content, one, second.Content)
	})
}

// wantHeard checks what the model was told, instructions aside.
func wantHeard(t *testing.T, c call, texts ...string) {
	t.Helper()
	var got []string
	for _, m := range c.Body.Messages {
		if m.Role == "system" {
			if !strings.Contains(m.text(), "You are under test.") {
				t.Errorf("the instructions are %q", m.text())
			}
			continue
		}
		got = append(got, m.text())
	}
	if diff := cmp.Diff(texts, got); diff != "" {
		t.Errorf("what the model heard (-want +got):\n%s", diff)
	}
}

// The client that reads RUN_FINISHED may act on it at once, without waiting for the response's end.
func TestFollowUpBehindTerminalEvent(t *testing.T) {
	t.Parallel()
	in := newInput(say("First?"))
	sharedModel.answerWith(t, in.Messages[0].Content, say("One."))
	for i := range 10 {
		f := shared.follow(t, in)
		f.until(t, event.terminal)
		answer := show(t, in.Messages, f.events)
		in.RunID = "run-" + string(rune('b'+i))
		next := user(say("Next?"))
		sharedModel.answerWith(t, next.Content, say("More."))
		in.Messages = append(answer, next)
	}
	if n := len(show(t, in.Messages, shared.run(t, in))); n != 22 {
		t.Errorf("%d messages, want 22", n)
	}
}

// A client that was away while a run ended is told what it missed, in its place, and so is the
// model.
func TestClientWasAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		in, missed := newInput(say("First?")), say("One.")
		sharedModel.answerWith(t, in.Messages[0].Content, missed)
		shared.run(t, in)
		next, answer := user(say("Second?")), say("Two.")
		sharedModel.answerWith(t, next.Content, answer)
		d := g.drive(t, shared, script{ThreadID: in.ThreadID, Messages: in.Messages, Runs: []scriptedRun{{RunID: "run-2", Add: []message{next}}}})
		wantMessages(t, []message{in.Messages[0], says(missed), next, says(answer)}, d.finish(t)[0].Messages)
		wantHeard(t, sharedModel.calls(t, next.Content)[0], in.Messages[0].Content, missed, next.Content)
	})
}

// A message that was edited, under its id, cuts what was said behind it.
func TestEdit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		before, edited := user(say("First?")), user(say("First, but better?"))
		edited.ID = before.ID
		sharedModel.answerWith(t, before.Content, say("One."))
		sharedModel.answerWith(t, edited.Content, "Better: "+mark)
		_, ends := g.talk(t, shared,
			scriptedRun{RunID: "run-1", Messages: []message{before}},
			scriptedRun{RunID: "run-2", Messages: []message{edited}})
		wantMessages(t, []message{edited, says("Better: " + mark)}, ends[1].Messages)
		wantHeard(t, sharedModel.calls(t, edited.Content)[0], edited.Content)
	})
}

func TestRegenerate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		question, bad, good := user(say("Write!")), say("A bad text."), say("A good text.")
		sharedModel.attempts(t, question.Content, fixture{Response: response{Content: bad}}, fixture{Response: response{Content: good}})
		_, ends := g.talk(t, shared,
			scriptedRun{RunID: "run-1", Messages: []message{question}},
			scriptedRun{RunID: "run-2", Messages: []message{question}})
		wantMessages(t, []message{question, says(bad)}, ends[0].Messages)
		wantMessages(t, []message{question, says(good)}, ends[1].Messages)
		calls := sharedModel.calls(t, question.Content)
		if len(calls) != 2 {
			t.Fatalf("%d model calls, want 2", len(calls))
		}
		wantHeard(t, calls[1], question.Content)
	})
}

// The offline agent needs no model server; its tool calls are real.
func TestDemoAgent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		question := user(say("What is 12*7, and what time is it?"))
		d := g.drive(t, shared, script{URL: shared.url("/v1/agents/demo/runs"), Runs: []scriptedRun{{RunID: "run-1", Messages: []message{question}}}})
		end := d.finish(t)[0]
		last := end.Messages[len(end.Messages)-1]
		if last.Role != "assistant" || !strings.Contains(last.Content, "84") {
			t.Errorf("the last message is %+v", last)
		}
		var started struct {
			ThreadID, RunID string
		}
		if err := json.Unmarshal(d.events(0, "RUN_STARTED")[0], &started); err != nil || started.RunID != "run-1" {
			t.Errorf("RUN_STARTED says %+v, %v", started, err)
		}
	})
}
