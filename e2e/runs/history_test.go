package runs

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/e2e/kit"
)

// TestHistorySize: each turn adds the same number of bytes to a history, however long the
// conversation is.
func TestHistorySize(t *testing.T) {
	t.Parallel()
	const turns = 2
	var sizes []int
	for _, words := range []int{10, 3000} {
		in := kit.NewInput(kit.Marked("And now?"))
		var before []kit.Message
		for i := range 40 {
			role := []string{"user", "assistant"}[i%2]
			before = append(before, kit.Message{ID: fmt.Sprintf("m%d", i), Role: role, Content: kit.LongText(words)})
		}
		in.Messages = append(before, in.Messages...)
		useCalculator(t, in.Messages[40].Content, kit.LongText(words))
		kit.Shared.Run(t, in)
		sizes = append(sizes, historySize(t, in))
	}
	if grown := sizes[1] - sizes[0]; grown > turns<<10 || grown < -turns<<10 {
		t.Errorf("history = %d bytes after a short conversation and %d after a long one, want about the same", sizes[0], sizes[1])
	}
}

// useCalculator scripts a tool call and an answer.
func useCalculator(t *testing.T, prompt, answer string) {
	t.Helper()
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{
			ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
}

// historySize returns the size of a run's history.
func historySize(t *testing.T, in kit.Input) int {
	t.Helper()
	return proto.Size(kit.Shared.History(t, in))
}

// TestLargeContent: content that is too large for a history is not in it: prompts, answers and
// arguments.
func TestLargeContent(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.LongText(2 << 20))
	answer := kit.LongText(200_000)
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content[:30]}, Response: kit.Response{Content: answer}, ChunkSize: 20_000})
	kit.WantMessages(t, append(in.Messages, kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, kit.Shared.Run(t, in)))
}
