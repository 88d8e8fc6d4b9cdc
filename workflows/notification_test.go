package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// notificationEvents returns the attempted notifications in order, with repeated attempts.
func (f *fixture) notificationEvents() []runs.NotificationEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	var events []runs.NotificationEvent
	for _, n := range f.notifications {
		events = append(events, n.Event)
	}
	return events
}

// TestNotificationsAreSentInOrder: notifications are sent in order, each until it succeeds.
// Decisions do not wait for them.
func TestNotificationsAreSentInOrder(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(2), nil }
	failures := 5
	fixture.notify = func(runs.Notification) error {
		if failures--; failures >= 0 {
			return errors.New("the log is unavailable")
		}
		return nil
	}
	results := fixture.decideOneByOne(ann.approvalOf("c0"), bob.approvalOf("c0"), ann.approvalOf("c1"))
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{bob.approvalOf("c1")}}, make(chan any, 1))
	}, time.Hour)
	fixture.env.ExecuteWorkflow(runs.TypeRun, input)
	for i, r := range results() {
		wantEqual(t, fmt.Sprintf("decision %d: error", i), r.Error, "")
	}
	opened := slices.Repeat([]runs.NotificationEvent{runs.EventOpened}, 6)
	if want := append(opened, runs.EventVoted, runs.EventDecided); !cmp.Equal(fixture.notificationEvents(), want) {
		t.Errorf("attempted notifications: got %v, want %v", fixture.notificationEvents(), want)
	}
	voted, decided := fixture.notifications[6], fixture.notifications[7]
	if len(voted.Items) != 1 || voted.Items[0].ID != "c1" || len(voted.Items[0].Votes) != 1 {
		t.Errorf("calls of the voted notification: got %+v, want only c1: the other call is decided", voted.Items)
	}
	mustEqual(t, "number of calls of the decided notification", len(decided.Items), 1)
	wantEqual(t, "call of the decided notification", decided.Items[0].ID, "c0")
	wantEqual(t, "approver of the decided notification", decided.Items[0].Decision.By, "bob")
}

// TestPendingNotificationsMoveToNextExecution: a thread that continues does not wait for
// notifications. The next execution sends the rest, concurrently with its first step.
func TestPendingNotificationsMoveToNextExecution(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(1), nil }
	fixture.notify = func(runs.Notification) error { return errors.New("the log is unavailable") }
	var asked, over time.Time
	fixture.env.RegisterDelayedCallback(func() {
		asked = fixture.env.Now()
		for _, p := range []person{ann, bob} {
			fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{p.approvalOf("c0")}}, make(chan any, 1))
		}
	}, time.Minute+500*time.Millisecond)
	next := fixture.runUntilContinued(input)
	if over = fixture.env.Now(); over.Sub(asked) > 2*time.Second {
		t.Errorf("continued %s after the decision, want at most 2s", over.Sub(asked))
	}
	var pending []runs.NotificationEvent
	for i, n := range next.Resume.Pending {
		pending = append(pending, n.Event)
		wantEqual(t, fmt.Sprintf("pending notification %d: number", i), n.Number, i+1)
	}
	if want := []runs.NotificationEvent{runs.EventOpened, runs.EventVoted, runs.EventDecided}; !cmp.Equal(pending, want) {
		t.Fatalf("pending notifications: got %v, want %v", pending, want)
	}

	// The next run ends before they are sent. It waits for them only briefly. Then another workflow
	// sends them, with retries.
	for name, tt := range map[string]struct {
		failures       int
		wantHandedOver []runs.NotificationEvent
	}{
		"sent":        {1, nil},
		"handed over": {7, []runs.NotificationEvent{"opened", "voted", "decided"}},
	} {
		nextFixture := setup(t)
		failures := tt.failures
		var sent, handed []runs.NotificationEvent
		var mu sync.Mutex // an attempt that was in progress when the run ended may run concurrently
		nextFixture.notify = func(in runs.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			if failures--; failures >= 0 {
				return errors.New("the log is unavailable")
			}
			if !slices.Contains(sent, in.Event) {
				sent = append(sent, in.Event)
			}
			return nil
		}
		var over time.Time
		nextFixture.env.SetOnChildWorkflowStartedListener(func(_ *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
			var in runs.NotificationsInput
			over = nextFixture.env.Now()
			if err := args.Get(&in); err != nil {
				t.Error(err)
				return
			}
			for _, n := range in.Interrupts.Pending {
				handed = append(handed, n.Event)
			}
		})
		nextFixture.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
		}
		nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
		began := nextFixture.env.Now()
		nextFixture.env.ExecuteWorkflow(runs.TypeRun, next)
		mustEqual(t, name+": number of ends", len(nextFixture.finished), 1)
		wantEqual(t, name+": outcome", nextFixture.finished[0].Outcome, runs.OutcomeSuccess)
		if !cmp.Equal(handed, tt.wantHandedOver) || tt.wantHandedOver != nil && over.Sub(began) > 3*time.Second {
			t.Errorf("%s: notifications handed over after %s: got %v, want %v", name, over.Sub(began), handed, tt.wantHandedOver)
		}
		mu.Lock()
		if want := []runs.NotificationEvent{"opened", "decided"}; !cmp.Equal(sent, want) {
			t.Errorf("%s: notifications sent: got %v, want %v", name, sent, want)
		}
		mu.Unlock()
	}
}

// TestInputWhileThreadIsBeingParked: an input that arrives while the thread is being parked is
// accepted, though a notification is in progress.
func TestInputWhileThreadIsBeingParked(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(1), nil }
	fixture.notify = func(in runs.Notification) error {
		if in.Event == runs.EventVoted {
			return errors.New("the log is unavailable")
		}
		return nil
	}
	answers := make(chan any, 2)
	for at, who := range map[time.Duration]person{-300 * time.Millisecond: ann, 600 * time.Millisecond: bob} {
		fixture.env.RegisterDelayedCallback(func() {
			in := queuedInput("r-" + string(who))
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, Offer: &in, Decisions: []runs.Decision{who.approvalOf("c0")}}, answers)
		}, runs.DefaultParkAfter+at)
	}
	next := fixture.runUntilContinued(input)
	first, second := <-answers, <-answers
	wantEqual[any](t, "first answer", first, runs.SubmitResult{Open: true})
	wantEqual[any](t, "second answer", second, runs.SubmitResult{Queued: true})
	wantEqual(t, "next run: run ID", next.Run.ID, "r-bob")
	if next.Resume.Items[0].Decision == nil {
		t.Fatal("decision of the first call of the next run = nil, want a value")
	}
}

// TestContradictingInputIsRefused: while the thread is about to continue, an input with a
// contradicting decision is refused as busy. An input with the same decision is accepted.
func TestContradictingInputIsRefused(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	fixture.notify = func(in runs.Notification) error {
		if in.Event == runs.EventOpened {
			return errors.New("the log is unavailable")
		}
		return nil
	}
	answers := make(chan any, 3)
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), clientResult}}, answers)
	}, time.Minute)
	rejects := approvalOf("ask")
	rejects.Kind, rejects.Digest = runs.DecisionReject, "no"
	for at, d := range []runs.Decision{rejects, approvalOf("ask")} {
		fixture.env.RegisterDelayedCallback(func() {
			in := queuedInput(fmt.Sprint("r", at))
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, Offer: &in, Decisions: []runs.Decision{d}}, answers)
		}, time.Minute+time.Duration(at+1)*100*time.Millisecond)
	}
	next := fixture.runUntilContinued(input)
	if <-answers; len(answers) != 2 || <-answers != runs.ErrorBusy || <-answers != (runs.SubmitResult{Queued: true}) || next.Run.ID != "r1" {
		t.Errorf("next run: got %+v, want r1", next.Run)
	}
}

// TestFailedNotificationDoesNotBlockOthers: a notification that fails permanently does not keep
// later ones from being sent.
func TestFailedNotificationDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return quorumAnswer(1), nil }
	fixture.notify = func(in runs.Notification) error {
		if in.Event == runs.EventOpened {
			return temporal.NewNonRetryableApplicationError("no", "bad", nil)
		}
		return nil
	}
	fixture.decideOneByOne(ann.approvalOf("c0"))
	fixture.env.ExecuteWorkflow(runs.TypeRun, input)
	if want := []runs.NotificationEvent{runs.EventOpened, runs.EventVoted}; !cmp.Equal(fixture.notificationEvents(), want) {
		t.Errorf("attempted notifications: got %v, want %v", fixture.notificationEvents(), want)
	}
}

// TestFencedRunSendsNoNotifications: no notification is sent about interrupts that the run did not
// end with.
func TestFencedRunSendsNoNotifications(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	fixture.finish = func(bool) error { return temporal.NewNonRetryableApplicationError("no", runs.ErrorFenced, nil) }
	result, _ := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeFenced)
	wantEqual(t, "number of notifications", len(fixture.notifications), 0)
}

// TestNotificationsOfHeldRunAreSentAfterIt: notifications about an earlier turn of a held run are
// sent after the run has ended, if they could not be sent before.
func TestNotificationsOfHeldRunAreSentAfterIt(t *testing.T) {
	t.Parallel()
	fixture := setupHeld(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 3 {
			return modelAnswer(30), nil
		}
		a := modelAnswer(10 * uint64(in.Turn))
		a.MessageID = fmt.Sprint("m", in.Turn)
		a.Calls = []runs.Call{{ID: fmt.Sprint("c", in.Turn), Tool: "t", Approval: &runs.Approval{ArgsDigest: "x"}}}
		a.InterruptCount = 1
		return a, nil
	}
	sent := fixture.recordNotificationsAfterRun(func(n runs.Notification) string { return fmt.Sprint(n.MessageID, " ", n.Event) })
	for i, id := range []string{"c1", "c2"} {
		fixture.decide(time.Duration(i+1)*time.Second, runs.Decision{CallID: id, Kind: runs.DecisionApprove, Digest: "d", ArgsDigest: "x"})
	}
	result, _ := fixture.run(heldInput())
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if want := []string{"m1 decided", "m2 decided"}; !containsAll(sent(), want) {
		t.Errorf("notifications: got %v, want %v among them", sent(), want)
	}
}

// TestNotificationsOfQuestionsInHeldTurn: if the tool asks a second question in the same turn, the
// notification about the answer to the first one is still sent.
func TestNotificationsOfQuestionsInHeldTurn(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	fixture := setupHeld(t)
	fixture.model, fixture.tool = modelCallingOnce, toolAskingTwice(&calls)
	sent := fixture.recordNotificationsAfterRun(func(n runs.Notification) string { return fmt.Sprint(n.Items[0].Question.Number, " ", n.Event) })
	fixture.decide(time.Minute, answerTo(1))
	fixture.decide(2*time.Minute, answerTo(2))
	result, _ := fixture.run(heldInput())
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if want := []string{"1 decided", "2 decided"}; !containsAll(sent(), want) {
		t.Errorf("notifications: got %v, want %v among them", sent(), want)
	}
}

// containsAll reports whether all has each of want.
func containsAll(all, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(all, s) })
}

// recordNotificationsAfterRun makes notifications fail until the run is over: then the
// notifications that are left get a workflow of their own. It returns a function that returns the
// names of those that were sent.
func (f *fixture) recordNotificationsAfterRun(name func(runs.Notification) string) (sent func() []string) {
	var mu sync.Mutex
	var names []string
	away := true
	f.notify = func(in runs.Notification) error {
		mu.Lock()
		defer mu.Unlock()
		if away {
			return errors.New("the log is unavailable")
		}
		names = append(names, name(in))
		return nil
	}
	f.env.SetOnChildWorkflowStartedListener(func(*workflow.Info, workflow.Context, converter.EncodedValues) {
		mu.Lock()
		defer mu.Unlock()
		away = false
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}
