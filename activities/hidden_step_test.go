package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// messageEvents returns the content of the events that belong to messages or subagents, line by
// line.
func messageEvents(events []agui.Event) string {
	var shown []string
	for _, e := range events {
		switch e := e.(type) {
		case *agui.TextMessageContent:
			shown = append(shown, e.Delta)
		case *agui.ReasoningMessageContent:
			shown = append(shown, e.Delta)
		case *agui.ToolCallStart:
			shown = append(shown, "call "+e.ToolCallName)
		case *agui.ToolCallArgs:
			shown = append(shown, e.Delta)
		case *agui.ToolCallResult:
			shown = append(shown, "result "+e.Content.Text())
		case *agui.MessagesSnapshot:
			for _, m := range e.Messages {
				if m.Role != agui.RoleUser {
					shown = append(shown, fmt.Sprint("snapshot ", m.Role, " ", m.Content.Text(), m.ToolCalls))
				}
			}
		case *agui.ActivitySnapshot, *agui.SubagentStarted:
			shown = append(shown, string(e.EventType()))
		}
	}
	return strings.Join(shown, "\n")
}

// TestHiddenStep: clients see the steps, the changes of the state and the usage of a hidden step,
// and none of its messages. Its own model sees them; later steps see its output only.
func TestHiddenStep(t *testing.T) {
	t.Parallel()
	var requests []string
	f, journal := setupPipeline(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		requests = append(requests, requestText(req))
		switch n {
		case 1:
			chunks, err := callAnswer([3]string{"1", "note", `{"note":"SECRET"}`}, [3]string{"2", "update_state", `{"title":"Bread"}`})
			return append([]llm.Chunk{llm.ReasoningDelta{Text: "SECRET"}, llm.TextDelta{Text: "SECRET"}}, chunks...), err
		case 2:
			return textAnswer("draft")
		}
		return textAnswer("public")
	}, `
  - name: prepare
    visible: false
    steps:
      - {name: draft, agent: {tools: [note], state: {write: [{path: /title}]}}}
      - {name: log, tool: note, args: {note: "${steps.draft} SECRET"}}
  - {name: write, agent: {instructions: "Write about ${messages.size()} ${steps.draft}."}}
  - {name: last, set: {/count: "${messages.size()}", /draft: "${steps.draft}"}}`)
	events, result := f.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "events of messages", messageEvents(events), "public")
	journal.wantEntries(t, "SECRET", "draft SECRET")
	for _, name := range []string{"prepare", "draft", "log", "write"} {
		wantEqual(t, "the step "+name+" is shown", strings.Contains(stepNames(events), name), true)
	}
	usage := events[len(events)-1].(*agui.RunFinished).Usage
	mustEqual(t, "number of usages", len(usage), 1)
	wantEqual(t, "output tokens", *usage[0].OutputTokens, 4)
	wantEqual(t, "requests", len(requests), 3)
	wantEqual(t, "the second request of the hidden step has its call", strings.Contains(requests[1], "SECRET note"), true)
	wantEqual(t, "the request of the next step has messages of the hidden step", strings.Contains(requests[2], "SECRET"), false)
	var state struct {
		Title string
		Draft string
		Count int
	}
	if err := json.Unmarshal([]byte(f.threadState()), &state); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "state", fmt.Sprint(state), "{Bread draft 2}")
	var shown []string
	for _, m := range f.snapshot().Messages() {
		shown = append(shown, m.Content.Text())
	}
	wantEqual(t, "messages for clients", strings.Join(shown, ","), "go,public")
}

// TestHiddenStepIsAttemptedAgain: clients learn nothing of an attempt of a hidden step that fails,
// or whose worker dies, and its output counts as usage.
func TestHiddenStepIsAttemptedAgain(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"the model fails": &llm.Error{Code: llm.CodeUnavailable, Message: "try again"}, "the worker dies": nil,
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := setupPipeline(t, func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("draft") }, `
  - {name: draft, visible: false, agent: {}}`)
			good := f.acts.Models["test"]
			f.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
				if f.calls.Load() > 0 {
					return good.Stream(ctx, req)
				}
				return func(yield func(llm.Chunk, error) bool) {
					f.calls.Add(1)
					for range 100 {
						yield(llm.TextDelta{Text: "SECRET. "}, nil)
					}
					if failure == nil {
						f.awaitOutput(ctx)
						panic("the worker dies")
					}
					yield(nil, failure)
				}
			})
			events, result := f.run("go")
			mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			wantEqual(t, "model calls", f.calls.Load(), 2)
			wantEqual(t, "events of messages", messageEvents(events), "")
			wantEqual(t, "CUSTOM events", strings.Count(typesOf(events), "CUSTOM"), 0)
			wantEqual(t, "STEP_STARTED events", strings.Count(typesOf(events), "STEP_STARTED"), strings.Count(typesOf(events), "STEP_FINISHED"))
			usage := events[len(events)-1].(*agui.RunFinished).Usage
			mustEqual(t, "number of usages", len(usage), 1)
			// The notes of a dead worker lack less than 256 bytes.
			if output := *usage[0].OutputTokens; failure != nil && output != 202 || output <= 202-256/4 || output > 202 {
				t.Errorf("output tokens: got %d, want at most 202", output)
			}
		})
	}
}

// awaitOutput waits until an attempt has noted the output of a hidden step.
func (f *fixture) awaitOutput(ctx context.Context) {
	f.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		last, err := f.log.Last(ctx, f.log.LaneSubject(run, stream.LaneMain))
		if err != nil {
			f.t.Error(err)
			return
		}
		var note struct{ Usage struct{ Output int64 } }
		if last != nil && last.Kind == stream.KindEvents && last.Result(ctx, &note) == nil && note.Usage.Output > 150 {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			f.t.Error("the attempt has noted no output")
			return
		}
	}
}

// TestHiddenSubagent: a hidden step calls a subagent that is a pipeline. Clients see that it works,
// and none of its messages; its own steps see each other's.
func TestHiddenSubagent(t *testing.T) {
	t.Parallel()
	helper := parseDefinition(t, "name: helper\nmodel: test/helper\nsteps:\n"+`
  - {name: one, agent: {}}
  - {name: both, parallel: [{name: left, agent: {}, input: left}]}
  - {name: two, agent: {}}
  - {name: three, visible: false, agent: {}}`)
	var last string
	f := setupSubagents(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model == "helper" {
			last = requestText(req)
			return textAnswer(fmt.Sprint("SECRET ", n))
		}
		return textAnswer("public")
	}, []*agents.Definition{helper})
	f.agent = parseDefinition(t, "name: a\nmodel: test/lead\nsteps:\n"+`
  - {name: ask, visible: false, agent: helper}
  - {name: write, agent: {}, input: "${steps.ask}"}`)
	events, result := f.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "events of messages", messageEvents(events), "SUBAGENT_STARTED\nSUBAGENT_STARTED\npublic")
	wantEqual(t, "request of the last step", last, "user: go\nassistant: SECRET 1\nassistant: SECRET 3")
	wantEqual(t, "the output of the subagent is the answer of its last visible step", strings.Contains(f.threadState(), `"ask":"SECRET 3"`), true)
}

// TestHiddenStepIsInterrupted: clients see the call of a hidden step that needs an approval, and no
// other message of the step.
func TestHiddenStepIsInterrupted(t *testing.T) {
	t.Parallel()
	f, _ := setupPipeline(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		chunks, err := callAnswer([3]string{"1", "note", `{"note":"SECRET"}`}, [3]string{"2", "note", `{"note":"pay"}`})
		return append([]llm.Chunk{llm.TextDelta{Text: "SECRET"}}, chunks...), err
	}, `
  - {name: pay, visible: false, agent: {tools: [note]}}`)
	f.agent.Approvals = []agents.Approval{{Tools: []string{"note"}, When: `args.note == "pay"`}}
	f.runUntilInterrupt("go")
	events := f.shown()
	interrupts := events[len(events)-1].(*agui.RunFinished).Outcome.Interrupts
	mustEqual(t, "number of interrupts", len(interrupts), 1)
	messages := f.snapshot().Messages()
	mustEqual(t, "number of messages", len(messages), 2)
	wantEqual(t, "text for clients", messages[1].Content.Text(), "")
	mustEqual(t, "number of calls", len(messages[1].ToolCalls), 1)
	wantEqual(t, "the call", messages[1].ToolCalls[0], agui.ToolCall{ID: interrupts[0].ToolCallID, Name: "note", Arguments: `{"note":"pay"}`})
	wantEqual(t, "SECRET in the events", strings.Contains(messageEvents(events), "SECRET"), false)
	wantEqual(t, "the call in the events", strings.Contains(messageEvents(events), "call note\n"+`{"note":"pay"}`), true)
}

// TestHiddenStepAsks: clients see the call of a hidden step whose tool asks a question.
func TestHiddenStepAsks(t *testing.T) {
	t.Parallel()
	f := setup(t, nil, shopTool(new([]string)))
	f.agent = parseDefinition(t, "name: a\ntools: [send]\nsteps:\n"+`
  - {name: order, visible: false, tool: send, args: {what: a book}}`)
	f.runUntilInterrupt("go")
	events := f.shown()
	interrupts := events[len(events)-1].(*agui.RunFinished).Outcome.Interrupts
	mustEqual(t, "number of interrupts", len(interrupts), 1)
	call := agui.ToolCall{ID: interrupts[0].ToolCallID, Name: "send", Arguments: `{"what":"a book"}`}
	messages := f.snapshot().Messages()
	mustEqual(t, "number of messages", len(messages), 2)
	wantEqual(t, "calls for clients", messages[1].ToolCalls, []agui.ToolCall{call})
	wantEqual(t, "the call in the events", strings.Contains(messageEvents(events), "call send\n"+call.Arguments), true)
}

// stepNames returns the names of the steps that events begin.
func stepNames(events []agui.Event) string {
	var names []string
	for _, e := range events {
		if started, ok := e.(*agui.StepStarted); ok {
			names = append(names, started.StepName)
		}
	}
	return strings.Join(names, " ")
}
