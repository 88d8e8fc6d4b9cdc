package runs

import (
	"fmt"
	"slices"
)

// Question refers to a question that a tool asked in the middle of a call.
type Question struct {
	// Seq is the record with the question. Number counts the questions of the call, from 1.
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
}

// AsksPeople reports whether people decide, as opposed to the client's own tools.
func (c *Interrupt) AsksPeople() bool { return c.Approval != nil || c.Asked != nil }

// number returns the number of the question that is open, from 1; 0 = the interrupt is about making the call.
func (c *Interrupt) number() int {
	if c.Asked == nil {
		return 0
	}
	return c.Asked.Number
}

// Question names the interrupt; the name is unique in the run.
func (c *Interrupt) Question() string {
	if c.Asked == nil {
		return c.ID
	}
	return fmt.Sprintf("%s/%d", c.ID, c.Asked.Number)
}

// OpenQuestions returns the names of the open interrupts.
func (w *Interrupts) OpenQuestions() []string {
	var names []string
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Decision == nil {
			names = append(names, c.Question())
		}
	}
	return names
}

// Add adds questions of tools, in the order of their calls.
func (w *Interrupts) Add(raised []Interrupt) {
	slices.SortFunc(raised, func(a, b Interrupt) int { return a.Index - b.Index })
	w.Calls = append(w.Calls, raised...)
}
