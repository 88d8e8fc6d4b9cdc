package approvals

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestClientTools: a turn calls client tools and one server tool. The server tool runs, the run
// ends with the client calls, and the client's next input has their results, with stock clients of
// both generations.
func TestClientTools(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		prompt, ready, yes, no := kit.Marked("Ask me."), kit.Marked("Thank you."), true, false
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
				{Name: "pick_color", Arguments: `{"of":"sky"}`}, {Name: "calculate", Arguments: `{"expression":"6*7"}`}, {Name: "pick_color", Arguments: `{"of":"sea"}`},
			}}},
			kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: ready}})
		tools := map[string]any{"tools": []any{map[string]any{
			"name": "pick_color", "description": "Lets the user pick one.", "parameters": map[string]any{"type": "object"},
		}}}
		blue := kit.Marked("blue")
		d := g.Drive(t, kit.Shared, kit.Script{
			URL: kit.Shared.URL("/v1/agents/clerk/runs"), Messages: []kit.Message{kit.UserMessage(prompt)},
			Runs: []kit.ScriptedRun{{RunID: "r1", Parameters: tools}, {RunID: "r2", Parameters: tools, Answer: map[string]string{"pick_color": blue}}},
		})
		ends := d.Finish(t)
		first, last := ends[0].Messages, ends[1].Messages
		if len(first) != 3 || len(first[1].ToolCalls) != 3 || first[2].ToolCallID != first[1].ToolCalls[1].ID {
			t.Fatalf("messages of the client after the first run = %+v, want 3 with three calls and one result", first)
		}
		if len(last) != 6 || last[5].Content != ready || last[3].Content != blue || last[4].Content != blue {
			t.Errorf("messages of the client at the end = %+v, want 6 with both results and the answer", last)
		}
		wantPending(t, d, g, []string{first[1].ToolCalls[0].ID, first[1].ToolCalls[2].ID})
		var heard []string
		for _, m := range kit.SharedModel.Calls(t, prompt)[1].Body.Messages {
			if m.Role == "tool" {
				heard = append(heard, m.Text())
			}
		}
		slices.Sort(heard)
		if !slices.Equal(heard, slices.Sorted(slices.Values([]string{"42", blue, blue}))) {
			t.Errorf("results sent to the model = %q, want 42 and twice %q", heard, blue)
		}
	})
}

// wantPending checks the client calls that the first run ended with. Clients before 1.0 do not know
// pending calls and look for calls without results.
func wantPending(t *testing.T, d *kit.ClientProcess, g kit.Generation, want []string) {
	t.Helper()
	finished := d.Events(0, "RUN_FINISHED")
	if len(finished) != 1 {
		t.Fatalf("number of ends = %d, want 1", len(finished))
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
	if g.Legacy {
		want = nil
	}
	if !slices.Equal(end.Outcome.PendingToolCallIDs, want) || strings.Contains(string(finished[0]), "interrupt") {
		t.Errorf("the run ended with %s, want the pending calls %q", finished[0], want)
	}
}

// TestClientToolsWithoutAnswer: if the client continues without the results, neither the
// client nor the model sees the calls again.
func TestClientToolsWithoutAnswer(t *testing.T) {
	t.Parallel()
	first := kit.NewInput(kit.Marked("Ask me."))
	first.Tools = []any{map[string]any{"name": "pick_color", "description": "", "parameters": map[string]any{}}}
	second := first.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("Never mind.")))
	done := kit.Marked("Fine.")
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: first.Messages[0].Content}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "pick_color", Arguments: `{}`}}}})
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, done)
	asked := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", first)
	asked.Finish(t)
	then := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", second)
	then.Finish(t)
	messages := kit.ShownMessages(t, second.Messages, then.Events)
	if last := messages[len(messages)-1]; last.Content != done {
		t.Errorf("last message of the client = %q, want %q", last.Content, done)
	}
	for _, m := range kit.SharedModel.Calls(t, second.Messages[1].Content)[0].Body.Messages {
		if m.Role == "tool" || strings.Contains(m.Text(), "pick_color") {
			t.Errorf("message sent to the model = %+v, want none of a tool", m)
		}
	}
}

// TestCancelInArguments: a run that is cancelled while the model writes a call of a client tool
// closes the call. A stock client that answers open calls has none to answer: the next run has its
// message only. The API takes no result, also not from a client that has missed the end of the run.
func TestCancelInArguments(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		const cancelled = "The call was cancelled."
		in := kit.NewInput(kit.Marked("Ask me."))
		kit.SharedModel.Answer(t, kit.Fixture{
			Match:    kit.Match{UserMessage: in.Messages[0].Content},
			Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "pick_color", Arguments: `{"of":"` + kit.LongText(4000) + `"}`}}},
			Latency:  20, ChunkSize: 20,
		})
		tools, url := map[string]any{"tools": kit.PickColor}, kit.Shared.URL("/v1/agents/clerk/runs")
		d := g.Drive(t, kit.Shared, kit.Script{URL: url, ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: in.RunID, Messages: in.Messages, Parameters: tools}}})
		d.Until(t, "TOOL_CALL_ARGS", 3)
		if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
			t.Fatalf("cancel: %d, want 202", got)
		}
		had := d.Finish(t)[0].Messages
		kit.WantCancelled(t, g, d)
		if len(had) != 3 || len(had[1].ToolCalls) != 1 || had[2].ToolCallID != had[1].ToolCalls[0].ID || had[2].Content != cancelled {
			t.Fatalf("messages of the client = %+v, want the call and its result", had)
		}
		kit.WantResult(t, kit.Shared.Endpoint, in, kit.ToolResultBody(had[2].ToolCallID, "blue"), http.StatusConflict, "answered")

		// The second client lacks the result. It also lacks the first one's message, which it edits
		// by that.
		for _, list := range [][]kit.Message{had, had[:2]} {
			next, answer := kit.UserMessage(kit.Marked("And now?")), kit.Marked("Now this.")
			kit.SharedModel.AnswerWith(t, next.Content, answer)
			d = g.Drive(t, kit.Shared, kit.Script{URL: url, ThreadID: in.ThreadID, Messages: list, Runs: []kit.ScriptedRun{
				{RunID: next.ID, Add: []kit.Message{next}, Parameters: tools, Answer: map[string]string{"pick_color": "blue"}},
			}})
			kit.WantMessages(t, append(had[:3:3], next, kit.AssistantMessage(answer)), d.Finish(t)[0].Messages)
			if got := kit.ToolResultsSent(t, next.Content); !slices.Equal(got, []string{cancelled}) {
				t.Errorf("results that the model received = %q, want %q", got, cancelled)
			}
		}
	})
}
