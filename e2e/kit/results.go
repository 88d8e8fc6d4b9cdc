package kit

import (
	"encoding/json"
	"testing"
)

// PickColor is the client tool pick_color.
var PickColor = []any{map[string]any{"name": "pick_color", "description": "Lets the user pick one.", "parameters": map[string]any{"type": "object"}}}

// ScriptColorPicks makes the model call the client tool pick_color once for each name, and answer
// with then when it has the results.
func ScriptColorPicks(t *testing.T, prompt, then string, of ...string) {
	t.Helper()
	yes, no := true, false
	var calls []ModelCall
	for _, what := range of {
		calls = append(calls, ModelCall{Name: "pick_color", Arguments: `{"of":"` + what + `"}`})
	}
	SharedModel.Answer(t,
		Fixture{Match: Match{UserMessage: prompt, HasToolResult: &no}, Response: Response{ToolCalls: calls}},
		Fixture{Match: Match{UserMessage: prompt, HasToolResult: &yes}, Response: Response{Content: then}})
}

// ToolCallIDs returns the ids of the tool calls of a run.
func ToolCallIDs(events []Event) []string {
	var ids []string
	for _, e := range events {
		if e.Type == "TOOL_CALL_START" {
			ids = append(ids, e.Member("toolCallId"))
		}
	}
	return ids
}

// PostToolResult sends the result of a client tool call over REST and returns the HTTP status and
// the response.
func PostToolResult(t *testing.T, p *Endpoint, threadID string, body any) (int, map[string]any) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/threads/"+threadID+"/tool-results", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// UntilText reads a thread to the end of the run that answers with the text.
func (f *Follower) UntilText(t *testing.T, text string) {
	t.Helper()
	for {
		f.UntilSuccess(t)
		if messages := ShownMessages(t, nil, f.Events); messages[len(messages)-1].Content == text {
			return
		}
	}
}

// ToolResultBody returns the request body with a result of a client tool call.
func ToolResultBody(call, content string) map[string]any {
	return map[string]any{"toolCallId": call, "content": content}
}

// WantResult sends a tool result and checks the status and code of the response.
func WantResult(t *testing.T, p *Endpoint, in Input, body any, status int, code string) map[string]any {
	t.Helper()
	got, answer := PostToolResult(t, p, in.ThreadID, body)
	if text, _ := answer["code"].(string); got != status || text != code {
		t.Errorf("the result %v: %d %v, want %d %q", body, got, answer, status, code)
	}
	return answer
}
