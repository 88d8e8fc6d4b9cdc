package kit

import (
	"encoding/json"
	"testing"
)

var PickColor = []any{map[string]any{"name": "pick_color", "description": "Lets the user pick one.", "parameters": map[string]any{"type": "object"}}}

// Picks lets the model ask the client for colors, and say something when it has them.
func Picks(t *testing.T, prompt, then string, of ...string) {
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

// CallsOf returns the ids of the tool calls that a run has made.
func CallsOf(events []Event) []string {
	var ids []string
	for _, e := range events {
		if e.Type == "TOOL_CALL_START" {
			ids = append(ids, e.Member("toolCallId"))
		}
	}
	return ids
}

// GiveResult says over REST what came of a call of the client's.
func GiveResult(t *testing.T, p *Endpoint, threadID string, body any) (int, map[string]any) {
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

// UntilSaid reads a thread to the end of the run that says something.
func (f *Follower) UntilSaid(t *testing.T, text string) {
	t.Helper()
	for {
		f.UntilSuccess(t)
		if messages := Show(t, nil, f.Events); messages[len(messages)-1].Content == text {
			return
		}
	}
}

func CameTo(call, content string) map[string]any {
	return map[string]any{"toolCallId": call, "content": content}
}

// WantResult gives a result and checks how that is answered.
func WantResult(t *testing.T, p *Endpoint, in Input, body any, status int, code string) map[string]any {
	t.Helper()
	got, answer := GiveResult(t, p, in.ThreadID, body)
	if said, _ := answer["code"].(string); got != status || said != code {
		t.Errorf("the result %v: %d %v, want %d %q", body, got, answer, status, code)
	}
	return answer
}
