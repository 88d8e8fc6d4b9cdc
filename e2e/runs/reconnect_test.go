package runs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestCutConnection: a client whose connection is cut repeatedly, anywhere in a frame, has the
// right messages.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string][]int{
		"before the first byte": {0, 0, 0},
		"within frames":         {1, 40, 180, 3, 777, 260, 1, 500},
		"within characters":     {605, 606, 607, 608, 609, 610, 611, 612},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				question, answer := kit.UserMessage(kit.Marked("Long?")), strings.Repeat(kit.Marked("世界 🌍 größer "), 8)
				kit.SharedModel.AnswerInOrder(t, question.Content, kit.Fixture{Response: kit.Response{Content: answer}, ChunkSize: 5, Latency: 5})
				d := g.Drive(t, kit.Shared, kit.Script{
					Runs:      []kit.ScriptedRun{{RunID: "run-1", Messages: []kit.Message{question}}},
					Reconnect: &kit.ReconnectRule{Addresses: kit.Shared.AddressFile(), Cuts: cuts},
				})
				kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(answer)}, d.Finish(t)[0].Messages)
				if n := len(kit.SharedModel.Calls(t, question.Content)); n != 1 {
					t.Errorf("%d model calls, want 1", n)
				}
			})
		})
	}
}

// TestExactContinuation: after each event id of a run come exactly the same bytes and ids as the
// first time.
func TestExactContinuation(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, version := range []string{"1.0", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("Everything, please."))
			in.ProtocolVersion = version
			prompt := in.Messages[0].Content
			kit.SharedModel.Answer(t,
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{
					Reasoning: kit.Marked("Let me see."),
					ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"1+1"}`}, {Name: "calculate", Arguments: `{"expression":"2+2"}`}},
				}},
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("Done.")}, ChunkSize: 6})
			all := kit.Shared.Run(t, in)
			kit.ShownMessages(t, in.Messages, all)
			for i := range all[:len(all)-1] {
				f := kit.Shared.FollowAfter(t, in, all[:i+1])
				f.Finish(t)
				kit.WantSameEvents(t, fmt.Sprintf("after event %d", i), all, f.Events)
			}
			again := kit.Shared.Run(t, in)
			kit.WantSameEvents(t, "the same input again", all, again)
		})
	}
}

// TestReadersAgree: live readers that reconnect in mid-stream see what a reader without reconnects
// sees.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Slowly, please."))
	answer := kit.LongText(600)
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
	steady, restless := kit.Shared.Follow(t, in), kit.Shared.Follow(t, in)
	for range 10 {
		restless.UntilContent(t, 2)
		restless.Cut()
	}
	late := kit.Shared.Follow(t, in)
	steady.Finish(t)
	restless.Finish(t)
	late.Finish(t)
	if restless.Reconnects < 10 {
		t.Errorf("number of reconnects = %d, want at least 10", restless.Reconnects)
	}
	kit.WantSameEvents(t, "the reader that came back", steady.Events, restless.Events)
	kit.WantSameEvents(t, "the reader that came late", steady.Events, late.Events)
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, steady.Events))
}

// TestNoEventsAfterTheEnd: a reader at the end of a run gets 204, which makes an EventSource stop.
func TestNoEventsAfterTheEnd(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Short?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("Yes."))
	all := kit.Shared.Run(t, in)
	last := all[len(all)-1].ID
	for range 2 {
		resp, err := kit.Shared.Get(t.Context(), kit.EventsPath(in), last)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Errorf("%s, want 204", resp.Status)
		}
	}
	resp, err := kit.Shared.Get(t.Context(), kit.EventsPath(in)+"?after="+last, "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("?after= is answered with %s, want 204", resp.Status)
	}
}

func TestInvalidCursor(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Short?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("Yes."))
	id := kit.Shared.Run(t, in)[0].ID
	for _, cursor := range []string{"x", "0", "-", "42", strings.Repeat("0", 500), id + "-", id + "-x", id[1:], id[:10], "日本"} {
		resp, err := kit.Shared.Get(t.Context(), kit.EventsPath(in), cursor)
		if p := kit.ReadProblem(t, resp, err); p.Status != 400 || p.Code != "invalid_cursor" {
			t.Errorf("Last-Event-ID %q: %d %s, want 400 invalid_cursor", cursor, p.Status, p.Code)
		}
	}
}
