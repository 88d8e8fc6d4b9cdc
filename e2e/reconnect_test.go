package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The client's connection is cut again and again, anywhere in a frame, and nobody notices.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string][]int{
		"before the first byte": {0, 0, 0},
		"within frames":         {1, 40, 180, 3, 777, 260, 1, 500},
		"within characters":     {605, 606, 607, 608, 609, 610, 611, 612},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				question, answer := user(say("Long?")), strings.Repeat(say("世界 🌍 größer "), 8)
				sharedModel.attempts(t, question.Content, fixture{Response: response{Content: answer}, ChunkSize: 5, Latency: 5})
				d := g.drive(t, shared, script{
					Runs:      []scriptedRun{{RunID: "run-1", Messages: []message{question}}},
					Reconnect: &reconnectRule{Addresses: shared.addressFile(), Cuts: cuts},
				})
				wantMessages(t, []message{question, says(answer)}, d.finish(t)[0].Messages)
				if n := len(sharedModel.calls(t, question.Content)); n != 1 {
					t.Errorf("%d model calls, want 1", n)
				}
			})
		})
	}
}

// Behind every id of a run comes exactly what came behind it the first time: bytes and ids.
func TestExactContinuation(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, version := range []string{"1.0", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			t.Parallel()
			in := newInput(say("Everything, please."))
			in.ProtocolVersion = version
			prompt := in.Messages[0].Content
			sharedModel.answer(t,
				fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{
					Reasoning: say("Let me see."),
					ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"1+1"}`}, {Name: "calculate", Arguments: `{"expression":"2+2"}`}},
				}},
				fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: say("Done.")}, ChunkSize: 6})
			all := shared.run(t, in)
			show(t, in.Messages, all)
			for i := range all[:len(all)-1] {
				f := shared.behind(t, in, all[:i+1])
				f.finish(t)
				same(t, fmt.Sprintf("behind event %d", i), all, f.events)
			}
			again := shared.run(t, in)
			same(t, "the same input again", all, again)
		})
	}
}

// Live readers that come back in mid-stream see what one who never left sees.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	in := newInput(say("Slowly, please."))
	answer := long(600)
	sharedModel.attempts(t, in.Messages[0].Content, pours(answer))
	steady, restless := shared.follow(t, in), shared.follow(t, in)
	for range 10 {
		restless.contents(t, 2)
		restless.cut()
	}
	late := shared.follow(t, in)
	steady.finish(t)
	restless.finish(t)
	late.finish(t)
	if restless.comebacks < 10 {
		t.Errorf("only %d comebacks", restless.comebacks)
	}
	same(t, "the reader that came back", steady.events, restless.events)
	same(t, "the reader that came late", steady.events, late.events)
	wantMessages(t, append(slices.Clone(in.Messages), says(answer)), show(t, in.Messages, steady.events))
}

// At the end of a run there is nothing to come back for, which tells an EventSource to stop.
func TestNothingBehindTheEnd(t *testing.T) {
	t.Parallel()
	in := newInput(say("Short?"))
	sharedModel.answerWith(t, in.Messages[0].Content, say("Yes."))
	all := shared.run(t, in)
	last := all[len(all)-1].ID
	for range 2 {
		resp, err := shared.get(t.Context(), eventsPath(in), last)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Errorf("%s, want 204", resp.Status)
		}
	}
	resp, err := shared.get(t.Context(), eventsPath(in)+"?after="+last, "")
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
	in := newInput(say("Short?"))
	sharedModel.answerWith(t, in.Messages[0].Content, say("Yes."))
	id := shared.run(t, in)[0].ID
	for _, cursor := range []string{"x", "0", "-", "42", strings.Repeat("0", 500), id + "-", id + "-x", id[1:], id[:10], "日本"} {
		resp, err := shared.get(t.Context(), eventsPath(in), cursor)
		if p := refused(t, resp, err); p.Status != 400 || p.Code != "invalid_cursor" {
			t.Errorf("Last-Event-ID %q: %d %s, want 400 invalid_cursor", cursor, p.Status, p.Code)
		}
	}
}
