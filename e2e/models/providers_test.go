package models

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// TestProviders: the same conversation works with the APIs of all providers: reasoning, parallel
// tools, their results, and a second turn.
func TestProviders(t *testing.T) {
	t.Parallel()
	for agent, api := range map[string]string{"anthropic": "/v1/messages", "gemini": "streamGenerateContent"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				talkToProvider(t, g, agent, api)
			})
		})
	}
}

// talkToProvider checks a conversation over a provider's API.
func talkToProvider(t *testing.T, g kit.Generation, agent, api string) {
	t.Helper()
	yes, no := true, false
	question, thought, answer := kit.UserMessage(kit.Marked("Calculate.")), kit.Marked("Two of them, 計算."), kit.Marked("Grüße, 世界 🌍: 42 and 13.")
	thanks, bye := kit.UserMessage(kit.Marked("Thanks.")), kit.Marked("Goodbye.")
	calls := []kit.ModelCall{
		{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`},
		{ID: "call_b", Name: "calculate", Arguments: `{"expression":"6+7"}`},
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &no}, Response: kit.Response{Reasoning: thought, ToolCalls: calls}, ChunkSize: 5},
		kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &yes}, Response: kit.Response{Content: answer}, ChunkSize: 3})
	kit.SharedModel.AnswerWith(t, thanks.Content, bye)

	d := g.Drive(t, kit.Shared, kit.Script{
		URL:  kit.Shared.URL("/v1/agents/" + agent + "/runs"),
		Runs: []kit.ScriptedRun{{RunID: "run-1", Messages: []kit.Message{question}}, {RunID: "run-2", Add: []kit.Message{thanks}}},
	})
	ends := d.Finish(t)
	kit.WantMessages(t, []kit.Message{
		question, {Role: "reasoning", Content: thought}, kit.ToolCallMessage(calls...), kit.ToolMessage("42"), kit.ToolMessage("13"), kit.AssistantMessage(answer), thanks, kit.AssistantMessage(bye),
	}, kit.ByCall(ends[1].Messages))

	var heard [][]string
	for _, request := range kit.SharedModel.CallsOf(t, api, question.Content) {
		heard = append(heard, transcript(request.Body.Messages))
	}
	first := []string{"system", "user"}
	second := append(first[:2:2], "assistant", "call_a is 42", "call_b is 13")
	third := append(second[:5:5], "assistant", "user")
	if diff := cmp.Diff([][]string{first, second, third}, heard); diff != "" {
		t.Errorf("the model received (-want +got):\n%s", diff)
	}
}

// transcript returns the roles and texts of messages. Tool results are in the order of their calls,
// and may be wrapped in JSON.
func transcript(messages []kit.ChatMessage) []string {
	var list []string
	for _, m := range messages {
		speaker := m.Role
		if m.Role == "tool" {
			speaker = m.ToolCallID + " is " + digits.FindString(m.Text())
		}
		list = append(list, speaker)
	}
	if len(list) > 4 {
		slices.Sort(list[3:5])
	}
	return list
}

var digits = regexp.MustCompile(`\d+`)
