package trace_test

import (
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// TestTitleIsNoSpan: the model call that writes the title of the thread is no part of the run.
func TestTitleIsNoSpan(t *testing.T) {
	t.Parallel()
	l := setup(t)
	title := l.begin(stream.LaneTitle, "title")
	model := l.begin(stream.LaneMain, "1/model")
	l.finish(model, stream.LaneMain, stream.Result{Messages: []agui.Message{{ID: "m", Role: agui.RoleAssistant, Content: agui.TextContent("hi")}}}, `{}`)
	l.finish(title, stream.LaneTitle, stream.Result{Title: "A greeting"}, `{}`)
	l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r"})
	wantTree(t, l.read(), `
run boss: finished
  turn turn 1: finished
    model model: finished
`)
}
