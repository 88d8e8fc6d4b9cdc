package api

import (
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// preparedInput is an input that has passed all checks which need no thread, with a view of its
// run. One request or frame owns it, on one goroutine, and closes it. The stages of startOrAttach
// change run, view, input.Resume and steered.
type preparedInput struct {
	// run is the run of the input. If several runs have the input's run ID, it becomes the segment
	// that the input belongs to (see findRun).
	run    stream.Run
	input  *agui.RunAgentInput
	digest [32]byte // see digestInput; computed before the stages of startOrAttach change input
	agent  catalog.Published
	props  inputOptions
	// after is the client's cursor in the run; nil = it has none.
	after *stream.Cursor
	// resume are the input's entries as the client sent them. For an agent with legacyInterrupts,
	// resolveInterrupts interprets them anew in each round, by the interrupts that the thread then
	// has.
	resume []agui.ResumeEntry
	// view shows the run from its first record. It was attached before the log was read, so it
	// misses no record that is written meanwhile.
	view *view.View
	// steered is set if the active run has received the input's messages as steering. The input
	// then has no run of its own, and no stream.
	steered *commands.Steered
}

// Close ends the view. The run continues.
func (in *preparedInput) Close() { in.view.Close() }
