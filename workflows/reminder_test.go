package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// timedEvent is a notification of a waiting thread, with the time since the interrupt was opened.
type timedEvent struct {
	Event runs.NotificationEvent
	After time.Duration
}

// runUntilResolved executes a run with interrupts through all its executions, up to the run that
// continues. It returns the notifications sent until then. Time advances by itself.
func runUntilResolved(t *testing.T, a runs.ModelAnswer, between func(parked *runs.ParkedInput, fixture *fixture)) ([]timedEvent, runs.Input, []runs.Notification) {
	t.Helper()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return a, nil }
	fixture.env.ExecuteWorkflow(runs.TypeRun, input)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	later := setup(t)
	later.env.SetStartTime(fixture.env.Now())
	if between != nil {
		between(&parked, later)
	}
	later.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	decodeContinuation(t, later.env.GetWorkflowError(), runs.TypeRun, &next)
	notices := append(fixture.notifications, later.notifications...)
	var story []timedEvent
	for _, n := range notices {
		story = append(story, timedEvent{n.Event, n.At.Sub(n.OpenedAt).Round(time.Second)})
	}
	return story, next, notices
}

// TestRemindersAndEscalations: over days, reminders and escalations are sent, and finally the
// interrupt expires.
func TestRemindersAndEscalations(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	a := modelAnswer(10, "ask")
	a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Remind: 10 * h, Escalate: []time.Duration{4 * h, 24 * h}, Expires: 48 * h}, 1
	story, next, notices := runUntilResolved(t, a, nil)
	want := []timedEvent{
		{runs.EventOpened, 0},
		{runs.EventEscalated, 4 * h}, {runs.EventReminded, 10 * h}, {runs.EventReminded, 20 * h},
		{runs.EventEscalated, 24 * h}, {runs.EventReminded, 30 * h}, {runs.EventReminded, 40 * h},
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
	item := next.Resume.Items[0]
	wantEqual(t, "call of the next run: decision kind", item.Decision.Kind, runs.DecisionExpire)
	wantEqual(t, "call of the next run: number of escalations", item.Escalations, 2)
	wantEqual(t, "call of the next run: number of reminders", item.Reminded, 4)
	for i, n := range notices {
		wantEqual(t, fmt.Sprintf("notification %d: number", i), n.Number, i+1)
		wantEqual(t, fmt.Sprintf("notification %d: run ID", i), n.Run.ID, "r")
		wantEqual(t, fmt.Sprintf("notification %d: run thread", i), n.Run.Thread, "t")
		wantEqual(t, fmt.Sprintf("notification %d: record before it", i), n.After, 99)
		wantEqual(t, fmt.Sprintf("notification %d: agent", i), n.Agent, "a")
		wantEqual(t, fmt.Sprintf("notification %d: revision", i), n.Revision, "v")
		wantEqual(t, fmt.Sprintf("notification %d: message ID", i), n.MessageID, "m")
		wantEqual(t, fmt.Sprintf("notification %d: number of calls", i), len(n.Items), 1)
	}
	mustEqual(t, "number of pending notifications of the next run", len(next.Resume.Pending), 1)
	wantEqual(t, "event of the pending notification", next.Resume.Pending[0].Event, runs.EventExpired)
	wantEqual(t, "number of the pending notification", next.Resume.Pending[0].Number, len(want)+1)
}

// TestEscalationsDuringOutage: all processes are down from the interrupt to its expiry. The expiry
// notification has the escalations that were due.
func TestEscalationsDuringOutage(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	a := modelAnswer(10, "ask")
	a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Escalate: []time.Duration{4 * h, 24 * h, 96 * h}, Expires: 48 * h}, 1
	_, next, _ := runUntilResolved(t, a, func(parked *runs.ParkedInput, f *fixture) {
		f.env.SetStartTime(parked.Interrupts.OpenedAt.Add(200 * h))
	})
	if item := next.Resume.Items[0]; item.Decision.Kind != runs.DecisionExpire || item.Escalations != 2 {
		t.Errorf("call: got %+v, want it expired with 2 escalations", item)
	}
}

// TestRemindersAreBounded: at most runs.MaxReminders reminders are sent.
func TestRemindersAreBounded(t *testing.T) {
	t.Parallel()
	a := modelAnswer(10, "ask")
	a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Remind: time.Hour, Escalate: []time.Duration{80 * time.Hour}}, 1
	story, _, _ := runUntilResolved(t, a, func(_ *runs.ParkedInput, f *fixture) {
		f.env.RegisterDelayedCallback(func() {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
		}, 100*24*time.Hour)
	})
	n := len(story)
	mustEqual(t, "number of notifications", n, 2+runs.MaxReminders)
	mustEqual(t, "time of the last reminder", story[n-2].After, runs.MaxReminders*time.Hour)
	wantEqual(t, "last event", story[n-1].Event, runs.EventEscalated)
}

// TestMissedRemindersAreSentOnce: reminders that were due while no process ran are sent as one.
func TestMissedRemindersAreSentOnce(t *testing.T) {
	t.Parallel()
	a := modelAnswer(10, "ask")
	a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Remind: time.Hour, Escalate: []time.Duration{2 * time.Hour, 3 * time.Hour}, Expires: 24 * time.Hour}, 1
	story, _, _ := runUntilResolved(t, a, func(parked *runs.ParkedInput, f *fixture) {
		f.env.SetStartTime(parked.Interrupts.OpenedAt.Add(20*time.Hour + time.Minute))
	})
	want := []timedEvent{
		{runs.EventOpened, 0}, {runs.EventEscalated, 20*time.Hour + time.Minute}, {runs.EventReminded, 20*time.Hour + time.Minute},
		{runs.EventReminded, 21 * time.Hour}, {runs.EventReminded, 22 * time.Hour}, {runs.EventReminded, 23 * time.Hour},
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}

// TestVotesSurviveParking: votes, reminders and escalations continue from execution to execution.
func TestVotesSurviveParking(t *testing.T) {
	t.Parallel()
	a := quorumAnswer(1)
	a.Calls[0].Approval.Remind, a.Calls[0].Approval.Expires = 3*time.Hour, 100*time.Hour
	story, next, _ := runUntilResolved(t, a, func(_ *runs.ParkedInput, f *fixture) {
		for i, p := range []person{ann, ann, bob} {
			f.env.RegisterDelayedCallback(func() {
				f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{p.approvalOf("c0")}}, make(chan any, 1))
			}, time.Duration(i+1)*2*time.Hour)
		}
	})
	kinds := make([]runs.NotificationEvent, len(story))
	for i := range story {
		kinds[i] = story[i].Event
	}
	if want := []runs.NotificationEvent{runs.EventOpened, runs.EventVoted, runs.EventReminded, runs.EventReminded}; !cmp.Equal(kinds, want) {
		t.Errorf("notifications: got %v, want %v", kinds, want)
	}
	if d := next.Resume.Items[0].Decision; d == nil || d.By != "bob" {
		t.Errorf("decision of the next run: got %+v, want one by bob", d)
	}
}
