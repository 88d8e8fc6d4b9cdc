package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// A tool may ask people something in the middle of a call: then the call ends with a question instead of a result,
// and is made anew when that is answered. Meanwhile it waits like a call that people have to approve. What is asked
// and answered is in the log.

// AskedQuestion is how a call has ended that waits for an answer.
type AskedQuestion struct {
	CallID string `json:"call"`
	Tool   string `json:"tool"`
	// Number counts the questions of the call, from 1.
	Number int `json:"number"`
	// Expires is how long there is to answer; 0 = for ever.
	Expires time.Duration `json:"expires,omitempty"`
}

// Question is a question that a tool has asked.
type Question struct {
	// Seq is the record that has it.
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
}

// asksPeople tells whether people are asked something about a call, as opposed to the client's own tools.
func (c *Interrupt) asksPeople() bool { return c.Approval != nil || c.Asked != nil }

// number tells which question of the call waits, from 1; 0 = whether it may be made.
func (c *Interrupt) number() int {
	if c.Asked == nil {
		return 0
	}
	return c.Asked.Number
}

// Question is a name of what people are asked, among those of a run.
func (c *Interrupt) Question() string {
	if c.Asked == nil {
		return c.ID
	}
	return fmt.Sprintf("%s/%d", c.ID, c.Asked.Number)
}

// questions are those that are open.
func (w *Interrupts) questions() []string {
	var names []string
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			names = append(names, c.Question())
		}
	}
	return names
}

// addQuestion takes in that a call has ended with a question.
func (t *toolCalls) addQuestion(c call, done ToolAnswer) {
	by := done.Question
	w := Interrupt{Call: Call{ID: by.CallID, Tool: by.Tool}, Index: c.index, Asked: &Question{Seq: done.Seq, Number: by.Number}}
	w.Expires = t.run.expiry(workflow.Now(t.ctx), by.Expires)
	t.questions = append(t.questions, w)
}

// raise adds questions, in the order of the calls.
func (w *Interrupts) raise(raised []Interrupt) {
	slices.SortFunc(raised, func(a, b Interrupt) int { return a.Index - b.Index })
	w.Calls = append(w.Calls, raised...)
}

// fitsWithInterrupts tells whether what calls of a turn have come to wait for can be carried on. A run that holds has it from
// here on.
func (r *run) fitsWithInterrupts(w *Interrupts) bool {
	if !r.in.Hold || len(w.Suspended) > 0 {
		return w.fits(r.in)
	}
	r.interrupts.held = w
	return len(w.Calls) <= MaxInterrupts && r.fits()
}
