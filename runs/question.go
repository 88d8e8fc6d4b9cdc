package runs

import (
	"fmt"
	"slices"
)

// Question is a question that a tool has asked.
type Question struct {
	// Seq is the record that has it.
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
}

// AsksPeople tells whether people are asked something about a call, as opposed to the client's own tools.
func (c *Interrupt) AsksPeople() bool { return c.Approval != nil || c.Asked != nil }

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

// OpenQuestions are those that are open.
func (w *Interrupts) OpenQuestions() []string {
	var names []string
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			names = append(names, c.Question())
		}
	}
	return names
}

// Add adds questions, in the order of the calls.
func (w *Interrupts) Add(raised []Interrupt) {
	slices.SortFunc(raised, func(a, b Interrupt) int { return a.Index - b.Index })
	w.Calls = append(w.Calls, raised...)
}
