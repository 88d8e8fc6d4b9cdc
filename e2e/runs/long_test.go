package runs

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/runs"
)

// TestLongRun: a conversation of about 200,000 tokens, then a turn of 300 tool calls, then 20 turns
// of one. The client and the next model call have all of it, and each tool call runs once. The
// history has a small record of each call whose size does not depend on the content.
func TestLongRun(t *testing.T) {
	t.Parallel()
	const calls, turns = 300, 20
	in := kit.NewInput(kit.Marked("And now work."))
	var before []kit.Message
	for i := range 8 {
		before = append(before, kit.Message{ID: fmt.Sprintf("m%d", i), Role: []string{"user", "assistant"}[i%2], Content: kit.LongText(100_000)})
	}
	in.Messages = append(before, in.Messages...)
	fixtures, answers := scriptToolTurns(append([]int{calls}, slices.Repeat([]int{1}, turns)...))
	kit.SharedModel.AnswerInOrder(t, in.Messages[len(before)].Content, fixtures...)

	begun := time.Now()
	f := kit.Shared.FollowAgent(t, "/v1/agents/tireless/runs", in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_START" })
	asked := time.Now()
	f.Until(t, func(e kit.Event) bool { return e.Type == "STEP_STARTED" && e.Member("stepName") == "model" })
	called := time.Now()
	f.Finish(t)
	t.Logf("%s until the first call, %s for %d calls, %s for %d turns", asked.Sub(begun), called.Sub(asked), calls, time.Since(called), turns)
	all := kit.ByCall(kit.ShownMessages(t, in.Messages, f.Events))
	kit.WantMessages(t, append(in.Messages, answers...), all)
	checkLongHistory(t, kit.Shared.History(t, in), calls, turns)

	weigh := kit.UserMessage("weigh " + kit.Marked(""))
	next := in
	next.RunID, next.Messages = "run-2", append(slices.Clone(in.Messages), weigh) // the client has not seen the first run's answers
	f = kit.Shared.FollowAgent(t, "/v1/agents/tireless/runs", next)
	f.Finish(t)
	weighed := len(weigh.Content)
	for _, m := range all {
		weighed += len(m.Content)
	}
	shown := kit.ShownMessages(t, next.Messages, f.Events)
	if got, want := shown[len(shown)-1].Content, fmt.Sprintf("%d messages with %d characters", len(all)+1, weighed); got != want {
		t.Errorf("the model got %s, want %s", got, want)
	}
}

// scriptToolTurns scripts turns with the given numbers of tool calls, and an answer. It returns the
// fixtures and the resulting conversation.
func scriptToolTurns(turns []int) (fixtures []kit.Fixture, conversation []kit.Message) {
	for _, calls := range turns {
		var f kit.Fixture
		var results []kit.Message
		for i := range calls {
			f.Response.ToolCalls = append(f.Response.ToolCalls, kit.ModelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":"2*%d"}`, i)})
			results = append(results, kit.ToolMessage(strconv.Itoa(2*i)))
		}
		fixtures = append(fixtures, f)
		conversation = append(append(conversation, kit.ToolCallMessage(f.Response.ToolCalls...)), results...)
	}
	done := kit.Marked("Done.")
	return append(fixtures, kit.FastAnswer(done)), append(conversation, kit.AssistantMessage(done))
}

// checkLongHistory checks the history of a run with one turn of many calls, and many turns of one.
func checkLongHistory(t *testing.T, h *historypb.History, calls, turns int) {
	t.Helper()
	if size := proto.Size(h); size >= 2<<20 {
		t.Errorf("size of the history = %d, want less than 2 MiB", size)
	}
	if largest := kit.LargestPayload(t, h); largest > runs.MaxPayload {
		t.Errorf("size of the largest payload = %d, want at most %d", largest, runs.MaxPayload)
	}
	tools, sizes := 0, []int(nil)
	for _, e := range h.GetEvents() {
		switch kit.ActivityOf(t, e) {
		case runs.ActivityCallTool:
			tools++
		case runs.ActivityCallModel:
			sizes = append(sizes, 0)
		}
		if started := e.GetActivityTaskStartedEventAttributes(); started.GetAttempt() > 1 {
			t.Errorf("event %d: attempts of the step = %d, want 1", e.GetEventId(), started.GetAttempt())
		}
		if len(sizes) > 0 {
			sizes[len(sizes)-1] += proto.Size(e)
		}
	}
	if tools != calls+turns || len(sizes) != 1+turns+1 {
		t.Fatalf("number of tool calls = %d in %d turns, want %d in %d", tools, len(sizes), calls+turns, turns+2)
	}
	t.Logf("the history has %d bytes, %d of them for the turn of %d calls; the largest payload has %d", proto.Size(h), sizes[0], calls, kit.LargestPayload(t, h))
	sizes = sizes[1 : 1+turns]
	median := slices.Sorted(slices.Values(sizes))[turns/2] // a busy machine may add a workflow task to a turn
	if last := slices.Min(sizes[turns-5:]); last > median+median/20 {
		t.Errorf("sizes of the turns = %v, want no growth", sizes)
	}
}
