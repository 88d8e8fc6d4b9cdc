package stream_test

import (
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestStepEndsInEarlierRecord: an attempt with more events than a record takes ends a step in a
// record before its done record. The end of the run does not end the step again.
func TestStepEndsInEarlierRecord(t *testing.T) {
	t.Parallel()
	f := &projectionFixture{t: t, ctx: t.Context(), log: streamtest.Open(t), run: run, step: func() {}}
	f.begin(run, user, "")
	f.after = f.last()
	f.after = must[uint64](t)(f.log.OpenStep(f.ctx, f.place("1/tools"), nil, &agui.StepStarted{StepName: "tools"}))
	f.after = f.writeFinishedAttempt(f.place("1/tools"), resultWith(), &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "next"}, &agui.StepFinished{StepName: "next"})
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	ends := map[string]int{}
	for _, frame := range availableEvents(t, viewer(streamtest.Follow(t, f.log)).Run(run, view.Options{Generation: stream.Generation1})) {
		e, err := agui.Decode(frame.Event)
		if err != nil {
			t.Fatal(err)
		}
		if step, ok := e.(*agui.StepFinished); ok {
			ends[step.StepName]++
		}
	}
	for _, name := range []string{"tools", "next"} {
		if ends[name] != 1 {
			t.Errorf("the step %s ends %d times, want once", name, ends[name])
		}
	}
}
