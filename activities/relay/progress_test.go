package relay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
)

// TestContinuedRun: a run that is continued after any event writes the same events as a run that was
// not interrupted, and has the same messages, interrupts and usage.
func TestContinuedRun(t *testing.T) {
	t.Parallel()
	l := newLane(t)
	tool := agui.Tool{Name: "show"}
	earlier := []agui.Message{{ID: remote.NewID(agent, "r0", "m1"), Role: agui.RoleAssistant, Content: agui.TextContent("Earlier")}}
	// Adding an event changes its IDs, so each relay gets events of its own.
	events := func() (all []agui.Event) {
		all = append(all, started(), &agui.StepStarted{StepName: "s"}, &agui.StateSnapshot{Snapshot: json.RawMessage(`{"n":1}`)})
		all = append(all, text("m1", "Hello")...)
		all = append(all, call("c1", "show", "m1")...)
		all = append(all, &agui.Custom{Name: "on_interrupt", Value: json.RawMessage(`{"id":"i1","message":"Sure?"}`)},
			&agui.MessagesSnapshot{Messages: []agui.Message{{ID: "m2", Role: agui.RoleAssistant, Content: agui.TextContent("More")}}},
			&agui.StepFinished{StepName: "s"}, finished())
		return all
	}
	whole := l.relay(earlier, tool)
	whole.add(events()...)
	want := lines(t, whole.written())
	for n := 1; n < len(events()); n++ {
		first := l.relay(earlier, tool)
		first.add(events()[:n]...)
		progress, err := first.Progress("id-7")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(progress)
		if err != nil {
			t.Fatal(err)
		}
		var stored relay.Progress
		if err := json.Unmarshal(raw, &stored); err != nil || stored.LastEventID != "id-7" {
			t.Fatalf("progress = %s, %v", raw, err)
		}
		first.add(events()[n]) // the worker may have written more than its last note says
		written := first.written()
		second := l.relay(earlier, tool)
		if err := second.Repeat(t.Context(), stored, written); err != nil {
			t.Fatal(err)
		}
		second.add(events()[n:]...)
		if diff := cmp.Diff(want, lines(t, second.written())); diff != "" {
			t.Errorf("continued after event %d (-want +got):\n%s", n, diff)
		}
		_, wantCalls := whole.ClientCalls()
		_, calls := second.ClientCalls()
		if diff := cmp.Diff(whole.Messages(), second.Messages(), cmp.AllowUnexported(agui.Content{})) + cmp.Diff(whole.Interrupts(), second.Interrupts()) + cmp.Diff(wantCalls, calls) + cmp.Diff(whole.AnswerID(), second.AnswerID()); diff != "" {
			t.Errorf("continued after event %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestContinuedTwice: a remote that repeats what it has sent before the continuation breaks the
// protocol, and nothing of that reaches the log.
func TestContinuedTwice(t *testing.T) {
	t.Parallel()
	l := newLane(t)
	first := l.relay(nil)
	first.add(started(), &agui.TextMessageStart{MessageID: "m1", Role: agui.RoleAssistant})
	progress, err := first.Progress("id-1")
	if err != nil {
		t.Fatal(err)
	}
	written := first.written()
	second := l.relay(nil)
	if err := second.Repeat(t.Context(), progress, written); err != nil {
		t.Fatal(err)
	}
	err = second.Add(t.Context(), &agui.TextMessageStart{MessageID: "m1", Role: agui.RoleAssistant})
	failure, ok := errors.AsType[*remote.Error](err)
	if !ok || failure.Kind != remote.KindProtocol || !strings.Contains(failure.Message, string(agui.RuleAlreadyOpen)) {
		t.Errorf("got %v, want a protocol error with the rule %s", err, agui.RuleAlreadyOpen)
	}
	wantEvents(t, second.written(), written)
}
