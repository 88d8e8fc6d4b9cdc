package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A turn calls tools of the client's and one of ours. Ours is answered, the run ends with the
// others, and the client's next input has their results: with stock clients of both generations.
func TestClientTools(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		prompt, ready, yes, no := say("Ask me."), say("Thank you."), true, false
		sharedModel.answer(t,
			fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{
				{Name: "pick_color", Arguments: `{"of":"sky"}`}, {Name: "calculate", Arguments: `{"expression":"6*7"}`}, {Name: "pick_color", Arguments: `{"of":"sea"}`},
			}}},
			fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: ready}})
		tools := map[string]any{"tools": []any{map[string]any{
			"name": "pick_color", "description": "Lets the user pick one.", "parameters": map[string]any{"type": "object"},
		}}}
		blue := say("blue")
		d := g.drive(t, shared, script{
			URL: shared.url("/v1/agents/clerk/runs"), Messages: []message{user(prompt)},
			Runs: []scriptedRun{{RunID: "r1", Parameters: tools}, {RunID: "r2", Parameters: tools, Answer: map[string]string{"pick_color": blue}}},
		})
		ends := d.finish(t)
		first, last := ends[0].Messages, ends[1].Messages
		if len(first) != 3 || len(first[1].ToolCalls) != 3 || first[2].ToolCallID != first[1].ToolCalls[1].ID {
			t.Fatalf("after the first run the client has %+v", first)
		}
		if len(last) != 6 || last[5].Content != ready || last[3].Content != blue || last[4].Content != blue {
			t.Errorf("at the end the client has %+v", last)
		}
		wantPending(t, d, g, []string{first[1].ToolCalls[0].ID, first[1].ToolCalls[2].ID})
		var heard []string
		for _, m := range sharedModel.calls(t, prompt)[1].Body.Messages {
			if m.Role == "tool" {
				heard = append(heard, m.text())
			}
		}
		slices.Sort(heard)
		if !slices.Equal(heard, slices.Sorted(slices.Values([]string{"42", blue, blue}))) {
			t.Errorf("the model heard the results %q", heard)
		}
	})
}

// wantPending checks what the first run ended with. Clients before 1.0 know no pending calls, and
// look for calls without results.
func wantPending(t *testing.T, d *driven, g generation, want []string) {
	t.Helper()
	finished := d.events(0, "RUN_FINISHED")
	if len(finished) != 1 {
		t.Fatalf("%d ends", len(finished))
	}
	var end struct {
		Outcome struct {
			Type               string   `json:"type"`
			PendingToolCallIDs []string `json:"pendingToolCallIds"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(finished[0], &end); err != nil {
		t.Fatal(err)
	}
	if g.legacy {
		want = nil
	}
	if !slices.Equal(end.Outcome.PendingToolCallIDs, want) || strings.Contains(string(finished[0]), "interrupt") {
		t.Errorf("the run ended with %s, want the pending calls %q", finished[0], want)
	}
}

// Whoever goes on without the results is told nothing of the calls any more, nor is the model.
func TestClientToolsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	first := newInput(say("Ask me."))
	first.Tools = []any{map[string]any{"name": "pick_color", "description": "", "parameters": map[string]any{}}}
	second := first.after("run-2", "reject", user(say("Never mind.")))
	done := say("Fine.")
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: first.Messages[0].Content}, Response: response{ToolCalls: []modelCall{{Name: "pick_color", Arguments: `{}`}}}})
	sharedModel.answerWith(t, second.Messages[1].Content, done)
	asked := shared.followAgent(t, "/v1/agents/clerk/runs", first)
	asked.finish(t)
	then := shared.followAgent(t, "/v1/agents/clerk/runs", second)
	then.finish(t)
	messages := show(t, second.Messages, then.events)
	if last := messages[len(messages)-1]; last.Content != done {
		t.Errorf("the client has %+v", messages)
	}
	for _, m := range sharedModel.calls(t, second.Messages[1].Content)[0].Body.Messages {
		if m.Role == "tool" || strings.Contains(m.text(), "pick_color") {
			t.Errorf("the model heard %+v", m)
		}
	}
}
