package clients

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestCopilotKit: a chat through CopilotKit with tools, a second turn, and an answer that begins
// and is retracted. A browser that connects later sees the same.
func TestCopilotKit(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	page, thread := kit.StartCopilotKit(t, "default", kit.Shared.URL(kit.AssistantPath)), kit.NewThread()
	first, second, third := kit.UserMessage(kit.Marked("Calculate.")), kit.UserMessage(kit.Marked("And once more, please.")), kit.UserMessage(kit.Marked("Thanks."))
	calls := []kit.ModelCall{
		{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`},
		{ID: "call_b", Name: "calculate", Arguments: `{"expression":"6+7"}`},
	}
	calculated, recovered, bye := kit.Marked("It is 42 and 13."), kit.Marked("Once more."), kit.Marked("Goodbye.")
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: first.Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: first.Content, HasToolResult: &yes}, Response: kit.Response{Content: calculated}})
	breaksOff := kit.SlowAnswer(kit.LongText(400))
	breaksOff.TruncateAfterChunks = 8
	kit.SharedModel.AnswerInOrder(t, second.Content, breaksOff, kit.FastAnswer(recovered))
	kit.SharedModel.AnswerWith(t, third.Content, bye)

	d, ends := page.Run(t, thread,
		kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{first}},
		kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{second}},
		kit.ScriptedRun{RunID: "run-3", Add: []kit.Message{third}})
	want := []kit.Message{
		first, kit.ToolCallMessage(calls...), kit.ToolMessage("42"), kit.ToolMessage("13"), kit.AssistantMessage(calculated),
		second, kit.AssistantMessage(recovered), third, kit.AssistantMessage(bye),
	}
	kit.WantMessages(t, want, kit.ByCall(ends[2].Messages))
	if len(d.Events(1, "MESSAGES_SNAPSHOT")) == 0 {
		t.Errorf("snapshots of the second run: got none in %s, want one", d.Types(1))
	}
	kit.WantMessages(t, want, kit.ByCall(page.Connect(t, thread)))
}
