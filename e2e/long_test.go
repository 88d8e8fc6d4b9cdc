package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"google.golang.org/protobuf/proto"

	"github.com/perdure/perdure/runs"
)

// A conversation of some 200,000 tokens, then a turn of 300 tool calls, then 20 turns of one: all
// of it reaches the client and, with the run that follows, the model; each tool runs once; and the
// history has a small record of each call, whose size depends on nothing that was said.
func TestLongRun(t *testing.T) {
	t.Parallel()
	const calls, turns = 300, 20
	in := newInput(say("And now work."))
	var before []message
	for i := range 8 {
		before = append(before, message{ID: fmt.Sprintf("m%d", i), Role: []string{"user", "assistant"}[i%2], Content: long(100_000)})
	}
	in.Messages = append(before, in.Messages...)
	fixtures, answers := works(append([]int{calls}, slices.Repeat([]int{1}, turns)...))
	sharedModel.attempts(t, in.Messages[len(before)].Content, fixtures...)

	begun := time.Now()
	f := shared.followAgent(t, "/v1/agents/tireless/runs", in)
	f.until(t, func(e event) bool { return e.Type == "TOOL_CALL_START" })
	asked := time.Now()
	f.until(t, func(e event) bool { return e.Type == "STEP_STARTED" && e.member("stepName") == "model" })
	called := time.Now()
	f.finish(t)
	t.Logf("%s until the first call, %s for %d calls, %s for %d turns", asked.Sub(begun), called.Sub(asked), calls, time.Since(called), turns)
	all := byCall(show(t, in.Messages, f.events))
	wantMessages(t, append(in.Messages, answers...), all)
	checkLongHistory(t, shared.history(t, in), calls, turns)

	weigh := user("weigh " + say(""))
	next := in
	next.RunID, next.Messages = "run-2", append(slices.Clone(in.Messages), weigh) // the client was away meanwhile
	f = shared.followAgent(t, "/v1/agents/tireless/runs", next)
	f.finish(t)
	weighed := len(weigh.Content)
	for _, m := range all {
		weighed += len(m.Content)
	}
	told := show(t, next.Messages, f.events)
	if got, want := told[len(told)-1].Content, fmt.Sprintf("%d messages with %d characters", len(all)+1, weighed); got != want {
		t.Errorf("the model was told %s, want %s", got, want)
	}
}

// works scripts turns with so many calls of a tool, and an answer behind them: what the model says,
// and what the conversation gets.
func works(turns []int) (fixtures []fixture, conversation []message) {
	for _, calls := range turns {
		var f fixture
		var results []message
		for i := range calls {
			f.Response.ToolCalls = append(f.Response.ToolCalls, modelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":"2*%d"}`, i)})
			results = append(results, result(strconv.Itoa(2*i)))
		}
		fixtures = append(fixtures, f)
		conversation = append(append(conversation, callsTools(f.Response.ToolCalls...)), results...)
	}
	done := say("Done.")
	return append(fixtures, answers(done)), append(conversation, says(done))
}

// checkLongHistory checks the history of a run of one turn with many calls and then many turns with
// one.
func checkLongHistory(t *testing.T, h *historypb.History, calls, turns int) {
	t.Helper()
	if size := proto.Size(h); size >= 2<<20 {
		t.Errorf("the history has %d bytes", size)
	}
	if largest := largestPayload(t, h); largest > runs.MaxPayload {
		t.Errorf("a payload has %d bytes", largest)
	}
	tools, sizes := 0, []int(nil)
	for _, e := range h.GetEvents() {
		switch e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() {
		case runs.ActivityCallTool:
			tools++
		case runs.ActivityCallModel:
			sizes = append(sizes, 0)
		}
		if started := e.GetActivityTaskStartedEventAttributes(); started.GetAttempt() > 1 {
			t.Errorf("event %d: a step takes %d attempts", e.GetEventId(), started.GetAttempt())
		}
		if len(sizes) > 0 {
			sizes[len(sizes)-1] += proto.Size(e)
		}
	}
	if tools != calls+turns || len(sizes) != 1+turns+1 {
		t.Fatalf("%d tools are called in %d turns", tools, len(sizes))
	}
	t.Logf("the history has %d bytes, %d of them for the turn of %d calls; the largest payload has %d", proto.Size(h), sizes[0], calls, largestPayload(t, h))
	sizes = sizes[1 : 1+turns]
	median := slices.Sorted(slices.Values(sizes))[turns/2] // a busy machine may add a task to a turn
	if last := slices.Min(sizes[turns-5:]); last > median+median/20 {
		t.Errorf("turns have taken %v bytes", sizes)
	}
}

// largestPayload returns the size in bytes of the largest of what a history holds for us.
func largestPayload(t *testing.T, h *historypb.History) int {
	t.Helper()
	largest := 0
	err := proxy.VisitPayloads(t.Context(), h, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range payloads {
				largest = max(largest, len(p.GetData()))
			}
			return payloads, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return largest
}
