package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A tool may ask a question in the middle of a call. The call then ends with the question instead
// of a result, and is made again when the question is answered. Question and answer are in the log.

// addQuestion adds the question with which a call has ended to the interrupts of the turn.
func (t *toolCalls) addQuestion(c call, done runs.ToolAnswer) {
	by := done.Question
	interrupt := runs.Interrupt{Call: runs.Call{ID: by.CallID, Tool: by.Tool}, Index: c.index, Question: &runs.Question{Seq: done.Seq, Number: by.Number, Waits: by.Waits}}
	interrupt.Expires = runs.Earlier(t.run.expiry(workflow.Now(t.ctx), by.Expires), by.ExpiresAt)
	t.questions = append(t.questions, interrupt)
}
