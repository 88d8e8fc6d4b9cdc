package e2e

import (
	"fmt"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// A turn adds the same number of bytes to a history, whatever was said before it.
func TestHistorySize(t *testing.T) {
	t.Parallel()
	const turns = 2
	var sizes []int
	for _, words := range []int{10, 3000} {
		in := newInput(say("And now?"))
		var before []message
		for i := range 40 {
			role := []string{"user", "assistant"}[i%2]
			before = append(before, message{ID: fmt.Sprintf("m%d", i), Role: role, Content: long(words)})
		}
		in.Messages = append(before, in.Messages...)
		useCalculator(t, in.Messages[40].Content, long(words))
		shared.run(t, in)
		sizes = append(sizes, historySize(t, in))
	}
	if grown := sizes[1] - sizes[0]; grown > turns<<10 || grown < -turns<<10 {
		t.Errorf("history of %d bytes behind a short conversation, %d behind a long one", sizes[0], sizes[1])
	}
}

// useCalculator scripts one call of a tool and an answer.
func useCalculator(t *testing.T, prompt, answer string) {
	t.Helper()
	yes, no := true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{
			ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: answer}})
}

func historySize(t *testing.T, in input) int {
	t.Helper()
	return proto.Size(shared.history(t, in))
}

// history waits until a thread's workflow has ended and fetches its history.
func (p *endpoint) history(t *testing.T, in input) *historypb.History {
	t.Helper()
	c, err := p.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	workflowID := "thread/default/" + in.ThreadID
	if err := c.GetWorkflow(t.Context(), workflowID, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	history, err := fetchHistory(t.Context(), c, workflowID, "")
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// What is too large for a history never gets there: neither prompt, nor answer, nor arguments.
func TestLargeContent(t *testing.T) {
	t.Parallel()
	in := newInput(long(2 << 20))
	answer := long(200_000)
	sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content[:30]}, Response: response{Content: answer}, ChunkSize: 20_000})
	wantMessages(t, append(in.Messages, says(answer)), show(t, in.Messages, shared.run(t, in)))
}
