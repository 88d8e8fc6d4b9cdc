package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/scripted"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
	"github.com/perdure/perdure/tools"
)

// addTool returns a tool that adds two numbers.
func addTool() tools.Tool {
	return tools.Func("add", "adds", func(_ context.Context, in pair) (int, error) { return in.A + in.B, nil })
}

// stateTool returns a tool that reads the state of the thread.
func stateTool() tools.Tool {
	return tools.Func("set", "sets", func(ctx context.Context, _ struct{}) (string, error) {
		return "", tools.Report(ctx).PatchState(tools.Set("/b", 2))
	})
}

// documentTool returns a tool that writes the document of the state.
func documentTool() tools.Tool {
	return tools.Func("write", "writes", func(context.Context, struct {
		Document string `json:"document"`
		Title    string `json:"title"`
	}) (string, error) {
		return "written", nil
	})
}

// TestReasoningReturnsToProvider: blocks of reasoning are messages. They are sent back to
// their provider, block by block, with the answer that they belong to.
func TestReasoningReturnsToProvider(t *testing.T) {
	t.Parallel()
	var back []llm.Reasoning
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 2 {
			for _, m := range req.Messages {
				back = append(back, m.Reasoning...)
			}
			return textAnswer("done")
		}
		return []llm.Chunk{
			llm.ReasoningDelta{Text: "first, "}, llm.ReasoningDelta{Text: "this"}, llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`{"sig":"a:b"}`)},
			llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`"hidden"`)},
			llm.TextDelta{Text: "Let me see."},
			llm.ReasoningDelta{Text: "then that"}, llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`1`)},
			llm.ToolCallStart{Index: 0, ID: "x", Name: "add"}, llm.ToolCallDelta{Index: 0, Arguments: `{"a":1,"b":2}`},
			llm.ReasoningDelta{Text: "aloud"},
			llm.Finish{Reason: llm.FinishToolCalls},
		}, nil
	}, addTool())
	events, _ := fixture.run("go")
	want := []llm.Reasoning{
		{Text: "first, this", Provider: "test", Data: json.RawMessage(`{"sig":"a:b"}`)},
		{Provider: "test", Data: json.RawMessage(`"hidden"`)},
		{Text: "then that", Provider: "test", Data: json.RawMessage(`1`)},
		{Text: "aloud"},
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("reasoning sent back (-want +got):\n%s", diff)
	}
	types := "REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_ENCRYPTED_VALUE REASONING_END TEXT_MESSAGE_START"
	if got := typesOf(events); !strings.Contains(got, types) {
		t.Errorf("events: got\n%s, want in it\n%s", got, types)
	}
	fixture.wantThreadEqualsClient(events)
}

// TestScriptedModelReceivesReasoning: the scripted model reports how many of its reasoning blocks
// came back unchanged.
func TestScriptedModelReceivesReasoning(t *testing.T) {
	t.Parallel()
	fixture := setup(t, nil, tools.Func("calculate", "", func(context.Context, struct {
		Expression string `json:"expression"`
	}) (string, error) {
		return "84", nil
	}))
	fixture.acts.Models["test"] = scripted.New(scripted.Think(0))
	fixture.agent.Model = "test/think"
	events, _ := fixture.run("go 12*7")
	messages := fixture.conversation()
	if got := messages[len(messages)-1].Content.Text(); !strings.Contains(got, "2 times") {
		t.Errorf("answer: got %q, want 2 blocks", got)
	}
	ids := map[string]bool{}
	for _, event := range events {
		if sealed, ok := event.(*agui.ReasoningEncryptedValue); ok {
			ids[sealed.EntityID] = true
			if !strings.HasPrefix(sealed.EncryptedValue, "scripted:") {
				t.Errorf("encrypted value = %q, want prefix %q", sealed.EncryptedValue, "scripted:")
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("blocks with an encrypted value: got %d, want 2: one with text in each answer", len(ids))
	}
}

// TestEmptyReasoningIsHidden: reasoning without text is not shown to clients. It still goes
// back to its provider, also when clients of either protocol generation send their own
// conversation.
func TestEmptyReasoningIsHidden(t *testing.T) {
	t.Parallel()
	var back []llm.Reasoning
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 2 {
			for _, m := range req.Messages {
				back = append(back, m.Reasoning...)
			}
			return textAnswer("done")
		}
		return []llm.Chunk{
			llm.ReasoningDelta{Text: ""}, llm.ReasoningEnd{Provider: "test"},
			llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`"hidden"`)},
			llm.ReasoningDelta{Text: ""}, llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`"hidden too"`)},
			llm.ToolCallStart{Index: 0, ID: "x", Name: "add"}, llm.ToolCallDelta{Index: 0, Arguments: `{"a":1,"b":2}`},
			llm.Finish{Reason: llm.FinishToolCalls},
		}, nil
	}, addTool())
	events, _ := fixture.run("go")
	got := typesOf(events)
	if strings.Contains(got, "REASONING") {
		t.Errorf("events = %q, want no %q", got, "REASONING")
	}
	want := []llm.Reasoning{{Provider: "test", Data: json.RawMessage(`"hidden"`)}, {Provider: "test", Data: json.RawMessage(`"hidden too"`)}}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("reasoning sent back (-want +got):\n%s", diff)
	}
	fixture.wantThreadEqualsClient(events)
	r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := r.Messages()
	wantEqual(t, "number of shown messages", len(shown), len(r.Entries)-2)
	for mode, cut := range map[snapshot.History]bool{snapshot.HistoryAuto: false, snapshot.HistoryAppend: false, snapshot.HistoryReplace: true} {
		messages := append(slices.Clip(shown), agui.Message{ID: "u2", Role: agui.RoleUser, Content: agui.TextContent("and now?")})
		a := r.Accept(snapshot.Claim{Messages: messages, History: mode})
		wantEqual(t, fmt.Sprintf("history %q: input differs", mode), a.Differs, false)
		wantEqual(t, fmt.Sprintf("history %q: conversation is cut", mode), a.Cut, cut)
		wantEqual(t, fmt.Sprintf("history %q: number of kept messages", mode), a.Keep, len(r.Entries))
		wantEqual(t, fmt.Sprintf("history %q: number of new messages", mode), len(a.Tail), 1)
	}
	for _, profile := range []stream.Generation{stream.Generation0, stream.Generation1} {
		shown := fixture.views().Run(run, view.Options{Generation: profile, Join: true})
		defer shown.Close()
		for {
			frames, err := shown.Next(t.Context(), time.Minute)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, frame := range frames {
				if strings.Contains(string(frame.Event), `"reasoning"`) {
					t.Errorf("reader with profile %v: event = %q, want no %q", profile, string(frame.Event), `"reasoning"`)
				}
				if strings.Contains(string(frame.Event), "REASONING") {
					t.Errorf("reader with profile %v: event = %q, want no %q", profile, string(frame.Event), "REASONING")
				}
			}
		}
	}
}

// TestReasoningOfFailedAttemptIsDropped: the reasoning of a dead attempt is neither in the thread
// nor sent to the provider.
func TestReasoningOfFailedAttemptIsDropped(t *testing.T) {
	t.Parallel()
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		switch n {
		case 1:
			return []llm.Chunk{
				llm.ReasoningDelta{Text: "wrong"}, llm.ReasoningEnd{Provider: "test", Data: json.RawMessage(`1`)}, llm.TextDelta{Text: "hm"},
			}, &llm.Error{Code: llm.CodeUnavailable}
		case 2:
			return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`})
		}
		for _, m := range req.Messages {
			if len(m.Reasoning) > 0 {
				t.Errorf("reasoning sent back: got %+v, want none", m.Reasoning)
			}
		}
		return textAnswer("done")
	}, addTool())
	events, _ := fixture.run("go")
	fixture.wantThreadEqualsClient(events)
}

func TestModelReceivesContextAndState(t *testing.T) {
	t.Parallel()
	var system []string
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		system = append(system, req.Messages[0].Text())
		if req.Messages[1].Role != llm.RoleUser {
			t.Errorf("message after the instructions: got %+v, want a message of the user", req.Messages[1])
		}
		if n == 1 {
			return callAnswer([3]string{"x", "set", `{}`})
		}
		return textAnswer("done")
	}, stateTool())
	fixture.agent.State.Visible = true
	fixture.input.Context = []agui.Context{{Description: "The page", Value: "line 1\nline 2"}, {Description: `a "b"`, Value: "{}"}}
	fixture.input.State = json.RawMessage(`{"a": 1}`)
	fixture.run("go")
	want := "Be brief.\n\nContext from the user's application:\n\n" +
		"<context description=\"The page\">\nline 1\nline 2\n</context>\n\n<context description=\"a \\\"b\\\"\">\n{}\n</context>\n\n" +
		"The state that you share with the application, as JSON:\n\n<state>\n{\"a\":1}\n</state>"
	if diff := cmp.Diff(want, system[0]); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	if !strings.Contains(system[1], `{"a":1,"b":2}`) {
		t.Errorf("second system message = %q, want text with %q", system[1], `{"a":1,"b":2}`)
	}
}

func TestStateFollowsArgument(t *testing.T) {
	t.Parallel()
	document := strings.Repeat("Once upon a time, “é” <b>. ", 400)
	arguments, err := json.Marshal(map[string]string{"document": document, "title": "T"})
	if err != nil {
		t.Fatal(err)
	}
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if n == 2 {
			return textAnswer("done")
		}
		chunks := []llm.Chunk{llm.ToolCallStart{Index: 0, ID: "x", Name: "write"}}
		for rest := string(arguments); rest != ""; {
			piece := []rune(rest)[:min(7, len([]rune(rest)))]
			chunks = append(chunks, llm.ToolCallDelta{Index: 0, Arguments: string(piece)})
			rest = rest[len(string(piece)):]
		}
		return append(chunks, llm.Finish{Reason: llm.FinishToolCalls}), nil
	}, documentTool())
	fixture.limits.Tokens = 100_000
	fixture.agent.State.Predict = []agents.Prediction{{Tool: "write", Argument: "document", Key: "a/b"}, {Tool: "other", Argument: "x", Key: "y"}}
	events, _ := fixture.run("go")
	r := fixture.wantThreadEqualsClient(events)
	var state map[string]string
	if err := json.Unmarshal(r.State, &state); err != nil || state["a/b"] != document || len(state) != 1 {
		t.Errorf("state = %s (%v), want the document at a/b", r.State, err)
	}
	deltas, size := 0, 0
	for i, event := range events {
		switch event := event.(type) {
		case *agui.StateDelta:
			deltas++
			size += len(event.Delta)
		case *agui.Custom:
			want := `[{"state_key":"a/b","tool":"write","tool_argument":"document"},{"state_key":"y","tool":"other","tool_argument":"x"}]`
			_, next := events[i+1].(*agui.ToolCallStart)
			wantEqual(t, "name of the custom event", event.Name, "PredictState")
			wantEqual(t, "value of the custom event", string(event.Value), want)
			wantEqual(t, "next event is the custom event", next, true)
		}
	}
	if deltas < 20 {
		t.Errorf("number of state deltas = %v, want at least %v", deltas, 20)
	}
	if size > 10*len(arguments) {
		t.Errorf("bytes of the state deltas = %v, want at most %v", size, 10*len(arguments))
	}
}

// TestModelReceivesMedia: media reach the model with their names. Media that no provider can use
// are left out silently.
func TestModelReceivesMedia(t *testing.T) {
	t.Parallel()
	var sent []llm.Message
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		sent = req.Messages[1:]
		return textAnswer("done")
	})
	messages := []agui.Message{
		{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{
			{Type: agui.PartDocument, Source: &agui.PartSource{Type: agui.SourceData, Value: "aGVsbG8=", MimeType: "application/pdf"}, Metadata: json.RawMessage(`{"filename":"a.pdf"}`)},
			{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceURL, Value: "https://example.com/i.png"}, Metadata: json.RawMessage(`[1]`)},
			{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceFile, Value: "file-1"}},
			agui.TextPart("what is this?"),
		})},
		{ID: "u3", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceFile, Value: "file-1"}}})},
	}
	fixture.more = messages
	fixture.run("go")
	want := []llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "go"}}},
		{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: "aGVsbG8=", Name: "a.pdf"},
			llm.Media{Kind: llm.MediaImage, URL: "https://example.com/i.png"},
			llm.Text{Text: "what is this?"},
		}},
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("messages sent (-want +got):\n%s", diff)
	}
}
