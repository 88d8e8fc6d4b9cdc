package runs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

func TestText(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		question, answer := kit.UserMessage(kit.Marked("What is it?")), kit.Marked("Grüße, 世界 🌍: a text of several chunks.")
		kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: question.Content}, Response: kit.Response{Content: answer}, ChunkSize: 3})
		d, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}})
		kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(answer)}, ends[0].Messages)
		kit.WantMessages(t, []kit.Message{kit.AssistantMessage(answer)}, ends[0].NewMessages)
		want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END STEP_FINISHED RUN_FINISHED"
		if got := d.Types(0); got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if got := len(d.Events(0, "TEXT_MESSAGE_CONTENT")); got < 3 {
			t.Errorf("text events: got %d, want a streamed text", got)
		}
	})
}

func TestReasoning(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		question, thought, answer := kit.UserMessage(kit.Marked("Why?")), kit.Marked("Because of this and that."), kit.Marked("Because.")
		kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: question.Content}, Response: kit.Response{Reasoning: thought, Content: answer}})
		_, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}})
		kit.WantMessages(t, []kit.Message{question, {Role: "reasoning", Content: thought}, kit.AssistantMessage(answer)}, ends[0].Messages)
	})
}

func TestServerTools(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	invented := kit.Marked("")[:20]
	for name, tt := range map[string]struct {
		calls   []kit.ModelCall
		results []string
	}{
		"one": {
			calls:   []kit.ModelCall{{ID: "call_a", Name: "calculate", Arguments: `{"expression":"12*7"}`}},
			results: []string{"84"},
		},
		"two concurrent": {
			calls: []kit.ModelCall{
				{ID: "call_a", Name: "calculate", Arguments: `{"expression":"2**10"}`},
				{ID: "call_b", Name: "calculate", Arguments: `{"expression":"1/4"}`},
			},
			results: []string{"1024", "0.25"},
		},
		"one that fails": {
			calls:   []kit.ModelCall{{ID: "call_a", Name: "calculate", Arguments: `{"expression":"` + kit.Mark + ` + 1"}`}},
			results: []string{""},
		},
		"one with arguments that do not fit": {
			calls:   []kit.ModelCall{{ID: "call_a", Name: "calculate", Arguments: `{"` + kit.Mark + `":1}`}},
			results: []string{""},
		},
		"one that the model made up": {
			calls:   []kit.ModelCall{{ID: "call_a", Name: invented, Arguments: `{}`}},
			results: []string{""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				question, answer := kit.UserMessage(kit.Marked("Use your tools.")), kit.Marked("Done.")
				kit.SharedModel.Answer(t,
					kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: tt.calls}},
					kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
				d, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}})

				got := ends[0].Messages
				want := []kit.Message{question, kit.ToolCallMessage(tt.calls...)}
				for i, r := range tt.results {
					if r == "" && len(got) > 2+i { // a failure, with any text
						r = got[2+i].Content
					}
					want = append(want, kit.ToolMessage(r))
				}
				kit.WantMessages(t, append(want, kit.AssistantMessage(answer)), kit.ByCall(got))
				if n := len(d.Events(0, "STEP_STARTED")); n != 3 {
					t.Errorf("%d steps, want model, tools, model", n)
				}
				wantResultsSent(t, kit.SharedModel.Calls(t, question.Content), tt.calls, kit.ByCall(got))
			})
		})
	}
}

// wantResultsSent checks that the model gets its own calls, under its own ids, with their results.
func wantResultsSent(t *testing.T, calls []kit.Call, made []kit.ModelCall, shown []kit.Message) {
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
			got[m.ToolCallID] = m.Text()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results that the model received (-want +got):\n%s", diff)
	}
}

// TestFollowUp: a run that is posted right after the previous one, on the same thread, is accepted,
// and the model gets the whole conversation.
func TestFollowUp(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		var (
			first, second = kit.UserMessage(kit.Marked("First?")), kit.UserMessage(kit.Marked("Second?"))
			one, two      = kit.Marked("One."), kit.Marked("Two.")
		)
		kit.SharedModel.AnswerWith(t, first.Content, one)
		kit.SharedModel.AnswerWith(t, second.Content, two)
		_, ends := g.Run(t, kit.Shared,
			kit.ScriptedRun{RunID: "run-1", Add: []kit.Message{first}},
			kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{second}})
		kit.WantMessages(t, []kit.Message{first, kit.AssistantMessage(one), second, kit.AssistantMessage(two)}, ends[1].Messages)
		calls := kit.SharedModel.Calls(t, second.Content)
		if len(calls) != 1 {
			t.Fatalf("%d model calls, want 1", len(calls))
		}
		wantModelInput(t, calls[0], first.Content, one, second.Content)
	})
}

// wantModelInput checks the messages of a model call, without the instructions.
func wantModelInput(t *testing.T, c kit.Call, texts ...string) {
	t.Helper()
	var got []string
	for _, m := range c.Body.Messages {
		if m.Role == "system" {
			if !strings.Contains(m.Text(), "You are under test.") {
				t.Errorf("instructions = %q, want those of the agent", m.Text())
			}
			continue
		}
		got = append(got, m.Text())
	}
	if diff := cmp.Diff(texts, got); diff != "" {
		t.Errorf("messages to the model (-want +got):\n%s", diff)
	}
}

// TestFollowUpAfterTerminalEvent: a client that has read RUN_FINISHED may post the next run at
// once, before the response ends.
func TestFollowUpAfterTerminalEvent(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("First?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("One."))
	for i := range 10 {
		f := kit.Shared.Follow(t, in)
		f.Until(t, kit.Event.Terminal)
		answer := kit.ShownMessages(t, in.Messages, f.Events)
		in.RunID = "run-" + string(rune('b'+i))
		next := kit.UserMessage(kit.Marked("Next?"))
		kit.SharedModel.AnswerWith(t, next.Content, kit.Marked("More."))
		in.Messages = append(answer, next)
	}
	if n := len(kit.ShownMessages(t, in.Messages, kit.Shared.Run(t, in))); n != 22 {
		t.Errorf("%d messages, want 22", n)
	}
}

// TestClientReturnsAfterAnswer: a client that was away while a run ended gets what it missed, in
// its place, and so does the model.
func TestClientReturnsAfterAnswer(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		in, missed := kit.NewInput(kit.Marked("First?")), kit.Marked("One.")
		kit.SharedModel.AnswerWith(t, in.Messages[0].Content, missed)
		kit.Shared.Run(t, in)
		next, answer := kit.UserMessage(kit.Marked("Second?")), kit.Marked("Two.")
		kit.SharedModel.AnswerWith(t, next.Content, answer)
		d := g.Drive(t, kit.Shared, kit.Script{ThreadID: in.ThreadID, Messages: in.Messages, Runs: []kit.ScriptedRun{{RunID: "run-2", Add: []kit.Message{next}}}})
		kit.WantMessages(t, []kit.Message{in.Messages[0], kit.AssistantMessage(missed), next, kit.AssistantMessage(answer)}, d.Finish(t)[0].Messages)
		wantModelInput(t, kit.SharedModel.Calls(t, next.Content)[0], in.Messages[0].Content, missed, next.Content)
	})
}

// TestEdit: a message that is edited under its id removes the messages after it.
func TestEdit(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		before, edited := kit.UserMessage(kit.Marked("First?")), kit.UserMessage(kit.Marked("First, but better?"))
		edited.ID = before.ID
		kit.SharedModel.AnswerWith(t, before.Content, kit.Marked("One."))
		kit.SharedModel.AnswerWith(t, edited.Content, "Better: "+kit.Mark)
		_, ends := g.Run(t, kit.Shared,
			kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{before}},
			kit.ScriptedRun{RunID: "run-2", Messages: []kit.Message{edited}})
		kit.WantMessages(t, []kit.Message{edited, kit.AssistantMessage("Better: " + kit.Mark)}, ends[1].Messages)
		wantModelInput(t, kit.SharedModel.Calls(t, edited.Content)[0], edited.Content)
	})
}

func TestRegenerate(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		question, bad, good := kit.UserMessage(kit.Marked("Write!")), kit.Marked("A bad text."), kit.Marked("A good text.")
		kit.SharedModel.AnswerInOrder(t, question.Content, kit.Fixture{Response: kit.Response{Content: bad}}, kit.Fixture{Response: kit.Response{Content: good}})
		_, ends := g.Run(t, kit.Shared,
			kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}},
			kit.ScriptedRun{RunID: "run-2", Messages: []kit.Message{question}})
		kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(bad)}, ends[0].Messages)
		kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(good)}, ends[1].Messages)
		calls := kit.SharedModel.Calls(t, question.Content)
		if len(calls) != 2 {
			t.Fatalf("%d model calls, want 2", len(calls))
		}
		wantModelInput(t, calls[1], question.Content)
	})
}

// TestDemoAgent: the offline agent needs no model server, and its tool calls are real.
func TestDemoAgent(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		question := kit.UserMessage(kit.Marked("What is 12*7, and what time is it?"))
		d := g.Drive(t, kit.Shared, kit.Script{URL: kit.Shared.URL("/v1/agents/demo/runs"), Runs: []kit.ScriptedRun{{RunID: "run-1", Messages: []kit.Message{question}}}})
		end := d.Finish(t)[0]
		last := end.Messages[len(end.Messages)-1]
		if last.Role != "assistant" || !strings.Contains(last.Content, "84") {
			t.Errorf("last message = %+v, want an answer with 84", last)
		}
		var started struct {
			ThreadID, RunID string
		}
		if err := json.Unmarshal(d.Events(0, "RUN_STARTED")[0], &started); err != nil || started.RunID != "run-1" {
			t.Errorf("RUN_STARTED = %+v, %v, want run-1", started, err)
		}
	})
}
