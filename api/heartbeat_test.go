package api_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

const beat = ": heartbeat"

// withoutRunChecks keeps the node from checking runs, which would be another reason for a stream to
// wake up.
func withoutRunChecks(c *api.Config) { c.Heartbeat, c.Silence = 100*time.Millisecond, time.Hour }

// repeatUntilStopped repeats do concurrently until stop is called.
func repeatUntilStopped(t *testing.T, do func(ctx context.Context, i int)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			do(ctx, i)
		}
	})
	return func() { cancel(); wait.Wait() }
}

// TestAttemptsDoNotDelayHeartbeats: attempts of a call whose tool is missing write records that
// clients are not shown. These records do not delay the heartbeats of any stream.
func TestAttemptsDoNotDelayHeartbeats(t *testing.T) {
	t.Parallel()
	node := setup(t, withoutRunChecks)
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	node.watchRun(inputOf("r1", "hello")).until("RUN_STARTED")
	streams := map[string]*frameReader{}
	for _, path := range []string{"runs/r1/events", "runs/r1/events?join=true", "events"} {
		streams[path] = node.watch("/v1/threads/t/" + path)
		streams[path].until("RUN_STARTED")
	}
	stop := repeatUntilStopped(t, func(ctx context.Context, _ int) {
		attempt, _, err := node.log.Begin(ctx, place)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		attempt.Close()
	})
	for _, w := range streams {
		w.until(beat)
		w.until(beat)
	}
	stop()
	node.end(place)
	for _, w := range streams {
		w.until("RUN_FINISHED")
	}
}

// TestHeartbeatsOfQueuedRun: a queued run has heartbeats and shows no event until the active run
// has ended.
func TestHeartbeatsOfQueuedRun(t *testing.T) {
	t.Parallel()
	node := setup(t, withoutRunChecks)
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	node.watchRun(inputOf("r1", "hello")).until("RUN_STARTED")
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e1") }
	queued := make(chan runs.Input, 1)
	node.temporal.submit = func(_ string, in runs.SubmitRequest) (runs.SubmitResult, error) {
		queued <- *in.Offer
		return runs.SubmitResult{Queued: true}, nil
	}
	in := inputOf("r2", "and then?")
	in.ForwardedProps = []byte(`{"perdure":{"onBusy":"enqueue"}}`)
	second := node.watchRun(in)
	second.until(beat)
	next := <-queued
	node.end(place)
	node.end(node.begin(next, "e1"))
	second.until("RUN_FINISHED")
}

// TestHeartbeatsOfHeldRun: a held run shows its interrupts, and then heartbeats until the
// decision. A parked run does the same: its workflow continues in another execution.
func TestHeartbeatsOfHeldRun(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat, c.Silence = 100*time.Millisecond, 10*time.Millisecond })
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	parked := make(chan struct{}, 1)
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		select {
		case parked <- struct{}{}:
		default:
		}
		return enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, nil
	}
	posted := node.watchRun(inputOf("r1", "hello"))
	posted.until("RUN_STARTED")
	held, err := stream.HeldEvents([]agui.Interrupt{{ID: "int_1", Reason: "tool_call", ToolCallID: "c1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if place.After, err = node.log.OpenStep(node.ctx(), place, nil, held...); err != nil {
		t.Fatal(err)
	}
	streams := []*frameReader{posted}
	for _, path := range []string{"runs/r1/events", "runs/r1/events?join=true", "events"} {
		streams = append(streams, node.watch("/v1/threads/t/"+path))
	}
	for _, w := range streams {
		w.until("perdure.approval")
	}
	<-parked
	for range 3 {
		for _, w := range streams {
			w.until(beat)
		}
	}
	node.end(place)
	for _, w := range streams {
		w.until("RUN_FINISHED")
	}
}

// TestHeartbeatsDuringTemporalOutage: heartbeats continue while the node waits for Temporal's
// answer about a silent run.
func TestHeartbeatsDuringTemporalOutage(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat = 20 * time.Millisecond })
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	asked, back := make(chan struct{}, 1), make(chan struct{})
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-back
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	node.watchRun(inputOf("r1", "hello")).until("RUN_STARTED")
	w := node.watch("/v1/threads/t/runs/r1/events")
	<-asked
	w.until(beat)
	w.until(beat)
	close(back)
	node.end(place)
	w.until("RUN_FINISHED")
}

func TestHeartbeatsDuringLogOutage(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat = 20 * time.Millisecond })
	node.temporal.start = func(in runs.Input) error { node.begin(in, "e1"); return nil }
	node.watchRun(inputOf("r1", "hello")).until("RUN_STARTED")
	run, thread := node.watch("/v1/threads/t/runs/r1/events"), node.watch("/v1/threads/t/events")
	run.until("RUN_STARTED")
	thread.until("RUN_STARTED")
	node.nats.Shutdown()
	for range 3 {
		run.until(beat)
		thread.until(beat)
	}
}

// TestOtherApprovalsDoNotDelayHeartbeats: events that a reader of the inbox feed filters out do not
// delay its heartbeats.
func TestOtherApprovalsDoNotDelayHeartbeats(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t, func(c *api.Config) { c.Heartbeat = 100 * time.Millisecond })
	w := fixture.watch("/v1/approvals/events?thread=t1")
	stop := repeatUntilStopped(t, func(ctx context.Context, i int) {
		a := fixture.approval("t2", "c1", fmt.Sprint("int_", i))
		if err := fixture.store.Record(ctx, "default", "evt_"+a.ID, &inbox.Event{Type: inbox.Opened, At: since, Approval: *a}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	defer stop()
	w.until(beat)
	w.until(beat)
}
