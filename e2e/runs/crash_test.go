package runs

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestKillDuringModelCall: the process is killed twice in mid-stream and restarted. All kinds of
// readers continue, see the killed attempts retracted by legal events, and have the right messages
// in the end.
func TestKillDuringModelCall(t *testing.T) {
	p := kit.Setup(t)
	before := kit.NewInput(kit.Marked("Before?"))
	kit.SharedModel.AnswerWith(t, before.Messages[0].Content, kit.Marked("Before."))
	settled := p.Run(t, before)

	var runs []*kit.CrashedRun
	for i := range 17 {
		runs = append(runs, kit.StartCrashedRun(t, p.Endpoint, i))
	}
	for _, g := range kit.Generations {
		runs = append(runs, driveCrashed(t, p, 0, g), driveCrashed(t, p, 1, g))
	}
	for kill := range 2 {
		for _, r := range runs {
			r.UntilMidStream(t)
		}
		p.Kill()
		p.Start(t)
		ready := time.Now()
		for _, r := range runs {
			r.UntilNextAttempt(t)
		}
		if took := time.Since(ready); took > 3*time.Second {
			t.Errorf("kill %d: all runs continued %s after readiness, want at most 3s", kill+1, took)
		}
	}
	for _, r := range runs {
		r.Finish(t, p.Endpoint)
	}
	kit.WantSameEvents(t, "a run that ended before the kills", settled, p.Run(t, before))
	wantNextRun(t, p, runs[0])
	wantForeignCursor(t, p, before)
}

// TestKillAtRandomTimes: the process is killed while runs begin, call tools and end. Each run ends
// right, and no finished step runs again.
func TestKillAtRandomTimes(t *testing.T) {
	p := kit.Setup(t)
	const runs = 15
	for round, killAt := range []int64{1, 60, 150} {
		var readers []*kit.Follower
		for range runs {
			in := kit.NewInput(kit.Marked("Use your tools."))
			useCalculator(t, in.Messages[0].Content, kit.Marked("Done."))
			readers = append(readers, p.NewFollower(t, in))
		}
		var events atomic.Int64
		reached := make(chan struct{})
		var g errgroup.Group
		for _, f := range readers {
			g.Go(func() error {
				for {
					e, err := f.Next()
					if err != nil || e.Terminal() {
						f.Cut()
						return err
					}
					if events.Add(1) == killAt {
						close(reached)
					}
				}
			})
		}
		select {
		case <-reached:
		case <-time.After(kit.WaitTimeout):
			t.Fatalf("round %d: only %d events", round, events.Load())
		}
		p.Kill()
		p.Start(t)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, f := range readers {
			wantGoodEnd(t, round, f)
		}
	}
}

// wantGoodEnd checks that a run succeeded with the right messages.
func wantGoodEnd(t *testing.T, round int, f *kit.Follower) {
	t.Helper()
	got := kit.ShownMessages(t, f.In.Messages, f.Events, kit.RetractWarning)
	if last := got[len(got)-1]; len(got) != 4 || got[2].Content != "42" || !strings.HasSuffix(last.Content, "Done.") {
		t.Errorf("round %d: messages = %+v, want 4 with the result and the answer", round, got)
	}
	finished := 0
	for _, e := range f.Events {
		if e.Type == "RUN_STARTED" || e.Type == "RUN_FINISHED" {
			finished++
		}
	}
	if finished != 2 {
		t.Errorf("round %d: events = %q, want two finished steps", round, kit.EventLines(f.Events))
	}
	// Two calls, and another for each attempt that the kill may have interrupted.
	if n := len(kit.SharedModel.Calls(t, f.In.Messages[0].Content)); n < 2 || n > 3 {
		t.Errorf("round %d: number of model calls = %d, want 2 or 3", round, n)
	}
}

// driveCrashed starts a crashed run with a stock client.
func driveCrashed(t *testing.T, p *kit.Perdure, kind int, g kit.Generation) *kit.CrashedRun {
	t.Helper()
	r := kit.NewCrashedRun(t, kind)
	r.Client = g.Drive(t, p, kit.Script{
		ThreadID: r.In.ThreadID, Runs: []kit.ScriptedRun{{RunID: r.In.RunID, Messages: r.In.Messages}},
		Reconnect: &kit.ReconnectRule{Addresses: p.AddressFile()},
	}).Tolerate("No message found containing tool call")
	return r
}

// wantNextRun checks that a thread takes a run afterwards, and that the model gets the valid
// conversation.
func wantNextRun(t *testing.T, p *kit.Perdure, r *kit.CrashedRun) {
	t.Helper()
	next := r.In
	next.RunID = "run-2"
	next.Messages = append(slices.Clone(kit.ShownMessages(t, r.In.Messages, r.Reader.Events)), kit.UserMessage(kit.Marked("And now?")))
	question := next.Messages[len(next.Messages)-1].Content
	kit.SharedModel.AnswerWith(t, question, kit.Marked("Now this."))
	p.Run(t, next)
	wantModelInput(t, kit.SharedModel.Calls(t, question)[0], r.Want[0].Content, r.Want[1].Content, question)
}

// wantForeignCursor checks that a cursor of another log and an invalid cursor are different errors.
func wantForeignCursor(t *testing.T, p *kit.Perdure, in kit.Input) {
	t.Helper()
	elsewhere := kit.NewInput(kit.Marked("Elsewhere?"))
	kit.SharedModel.AnswerWith(t, elsewhere.Messages[0].Content, kit.Marked("Here."))
	cursor := kit.Shared.Run(t, elsewhere)[0].ID
	resp, err := p.Get(t.Context(), kit.EventsPath(in), cursor)
	if p := kit.ReadProblem(t, resp, err); p.Status != 410 || p.Code != "log_replaced" {
		t.Errorf("a cursor of another log: %d %s, want 410 log_replaced", p.Status, p.Code)
	}
}
