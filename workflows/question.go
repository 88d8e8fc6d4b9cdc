package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A tool may ask people something in the middle of a call: then the call ends with a question instead of a result,
// and is made anew when that is answered. Meanwhile it waits like a call that people have to approve. What is asked
// and answered is in the log.

// addQuestion takes in that a call has ended with a question.
func (t *toolCalls) addQuestion(c call, done runs.ToolAnswer) {
	by := done.Question
	w := runs.Interrupt{Call: runs.Call{ID: by.CallID, Tool: by.Tool}, Index: c.index, Asked: &runs.Question{Seq: done.Seq, Number: by.Number}}
	w.Expires = t.run.expiry(workflow.Now(t.ctx), by.Expires)
	t.questions = append(t.questions, w)
}

// fitsWithInterrupts tells whether what calls of a turn have come to wait for can be carried on. A run that holds has it from
// here on.
func (r *run) fitsWithInterrupts(w *runs.Interrupts) bool {
	if !r.in.Hold || len(w.Suspended) > 0 {
		return w.Fits(r.in)
	}
	r.interrupts.held = w
	return len(w.Calls) <= runs.MaxInterrupts && r.fits()
}
