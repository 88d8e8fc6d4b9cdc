package e2e

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same conversation with models of other providers, over their own APIs: thoughts, parallel
// tools, their results, and a second turn on top of all that.
func TestProviders(t *testing.T) {
	t.Parallel()
	for agent, api := range map[string]string{"anthropic": "/v1/messages", "gemini": "streamGenerateContent"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				talkToProvider(t, g, agent, api)
			})
		})
	}
}

func talkToProvider(t *testing.T, g generation, agent, api string) {
	t.Helper()
	yes, no := true, false
	question, thought, answer := user(say("Calculate.")), say("Two of them, 計算."), say("Grüße, 世界 🌍: 42 and 13.")
	thanks, bye := user(say("Thanks.")), say("Goodbye.")
	calls := []modelCall{
		{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`},
		{ID: "call_b", Name: "calculate", Arguments: `{"expression":"6+7"}`},
	}
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: question.Content, HasToolResult: &no}, Response: response{Reasoning: thought, ToolCalls: calls}, ChunkSize: 5},
		fixture{Match: match{UserMessage: question.Content, HasToolResult: &yes}, Response: response{Content: answer}, ChunkSize: 3})
	sharedModel.answerWith(t, thanks.Content, bye)

	d := g.drive(t, shared, script{
		URL:  shared.url("/v1/agents/" + agent + "/runs"),
		Runs: []scriptedRun{{RunID: "run-1", Messages: []message{question}}, {RunID: "run-2", Add: []message{thanks}}},
	})
	ends := d.finish(t)
	wantMessages(t, []message{
		question, {Role: "reasoning", Content: thought}, callsTools(calls...), result("42"), result("13"), says(answer), thanks, says(bye),
	}, byCall(ends[1].Messages))

	var heard [][]string
	for _, request := range sharedModel.callsOf(t, api, question.Content) {
		heard = append(heard, transcript(request.Body.Messages))
	}
	first := []string{"system", "user"}
	second := append(first[:2:2], "assistant", "call_a is 42", "call_b is 13")
	third := append(second[:5:5], "assistant", "user")
	if diff := cmp.Diff([][]string{first, second, third}, heard); diff != "" {
		t.Errorf("the model hears (-want +got):\n%s", diff)
	}
}

// transcript says who speaks; results come in the order of their calls. They may be wrapped in
// JSON.
func transcript(messages []chatMessage) []string {
	var list []string
	for _, m := range messages {
		speaker := m.Role
		if m.Role == "tool" {
			speaker = m.ToolCallID + " is " + digits.FindString(m.text())
		}
		list = append(list, speaker)
	}
	if len(list) > 4 {
		slices.Sort(list[3:5])
	}
	return list
}

var digits = regexp.MustCompile(`\d+`)
