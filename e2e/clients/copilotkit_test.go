package clients

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// A chat through CopilotKit: tools, a second turn, and an answer that began and was withdrawn. A
// browser that connects afterwards sees the same.
func TestCopilotKit(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	page, thread := kit.LaunchCopilotKit(t, "default", kit.Shared.Url(kit.Assistant)), kit.NewThread()
	first, second, third := kit.User(kit.Say("Calculate.")), kit.User(kit.Say("And once more, please.")), kit.User(kit.Say("Thanks."))
	calls := []kit.ModelCall{
		{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`},
		{ID: "call_b", Name: "calculate", Arguments: `{"expression":"6+7"}`},
	}
	calculated, recovered, bye := kit.Say("It is 42 and 13."), kit.Say("Once more."), kit.Say("Goodbye.")
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: first.Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: first.Content, HasToolResult: &yes}, Response: kit.Response{Content: calculated}})
	breaksOff := kit.Pours(kit.Long(400))
	breaksOff.TruncateAfterChunks = 8
	kit.SharedModel.Attempts(t, second.Content, breaksOff, kit.Answers(recovered))
	kit.SharedModel.AnswerWith(t, third.Content, bye)

	d, ends := page.Talk(t, thread,
		kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{first}},
		kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{second}},
		kit.ScriptedRun{RunID: "run-3", Add: []kit.Message{third}})
	want := []kit.Message{
		first, kit.CallsTools(calls...), kit.Result("42"), kit.Result("13"), kit.Says(calculated),
		second, kit.Says(recovered), third, kit.Says(bye),
	}
	kit.WantMessages(t, want, kit.ByCall(ends[2].Messages))
	if len(d.Events(1, "MESSAGES_SNAPSHOT")) == 0 {
		t.Errorf("nothing was withdrawn in the second run: %s", d.Types(1))
	}
	kit.WantMessages(t, want, kit.ByCall(page.Connect(t, thread)))
}
