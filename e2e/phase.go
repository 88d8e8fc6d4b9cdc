package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// phase is a moment in the life of a run.
type phase struct {
	name string
	// turn and at are where its play stands still.
	turn, at int
	// shown tells whether an event is what a reader sees last before the moment; nil = the play's
	// standing still is enough.
	shown func(event) bool
	// next is the record of the log that ends the moment, where nothing can be made to stand still:
	// such a moment is a few milliseconds long, and whether it was hit is seen in the log.
	next func(record) bool
	tool string // observe, unless it is charge
}

// Phases, in the order in which a run has them.
const (
	phaseAccepted  = "accepted"
	phaseAsked     = "model asked"
	phaseFirst     = "first token"
	phaseReasoning = "reasoning"
	phaseArguments = "arguments"
	phaseTool      = "tool runs"
	phaseCharge    = "unsafe tool runs"
	phaseResult    = "tool done"
	phaseText      = "text"
	phaseLast      = "last token"
	phaseDone      = "model done"
	phaseEnded     = "ended"
)

var phases = []phase{
	{name: phaseAccepted, turn: 1, at: asked, next: func(r record) bool { return r.kind == "open" }},
	{name: phaseAsked, turn: 1, at: asked},
	{name: phaseFirst, turn: 1, at: 0, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.0")},
	{name: phaseReasoning, turn: 1, at: 2, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.2")},
	{name: phaseArguments, turn: 1, at: pieces + 2, shown: saysWord("TOOL_CALL_ARGS", "1.1.1")},
	{name: phaseTool, turn: turnTool, at: asked, shown: ofType("TOOL_CALL_END")},
	{name: phaseCharge, turn: turnTool, at: asked, shown: ofType("TOOL_CALL_END"), tool: "charge"},
	{name: phaseResult, turn: 2, at: asked, shown: ofType("TOOL_CALL_RESULT"), next: func(r record) bool { return r.kind == "open" && r.step == "2/model" }},
	{name: phaseText, turn: 2, at: 2, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.2")},
	{name: phaseLast, turn: 2, at: pieces - 1, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.4")},
	{name: phaseDone, turn: nowhere, shown: ofType("TEXT_MESSAGE_END"), next: func(r record) bool { return r.kind == "terminal" }},
	{name: phaseEnded, turn: nowhere, shown: event.terminal},
}

// saysWord fits the event with a word of a model's script.
func saysWord(eventType, word string) func(event) bool {
	return func(e event) bool { return e.Type == eventType && strings.Contains(e.member("delta"), " "+word+" ") }
}

func ofType(eventType string) func(event) bool {
	return func(e event) bool { return e.Type == eventType }
}

// brief reports whether nothing can be made to stand still in the phase.
func (ph phase) brief() bool { return ph.next != nil }

// actor is a run of the matrix: a play, who reads it, and what struck it.
type actor struct {
	phase  phase
	play   *play
	reader *follower
	struck time.Time // when the fault began
	cancel bool      // it was cancelled
	killed bool      // whoever ran it was
	unsaid string    // RUN_ERROR's code, if it is to end so
}

// enter prepares a run that stands still in a phase.
func (s *stage) enter(ctx context.Context, ph phase, at *endpoint) *actor {
	tool := ph.tool
	if tool == "" {
		tool = "observe"
	}
	p := newPlay(tool, ph.turn, ph.at)
	s.add(p)
	f := at.quiet(ctx, newInput(p.prompt()))
	f.agent = "/v1/agents/performer/runs"
	return &actor{phase: ph, play: p, reader: f}
}

// reach starts the run and waits until it is in its phase, and its reader has seen that.
func (a *actor) reach() error {
	if err := a.reader.connect(); err != nil {
		return err
	}
	for a.phase.shown != nil {
		e, err := a.reader.next()
		if err != nil {
			return fmt.Errorf("%s: %w", a.phase.name, err)
		}
		if a.phase.shown(e) {
			break
		}
		if e.terminal() {
			return fmt.Errorf("%s: the run ended before: %s", a.phase.name, e.Data)
		}
	}
	if a.phase.brief() || a.phase.turn == nowhere {
		return nil
	}
	select {
	case <-a.play.held:
		return nil
	case <-a.reader.ctx.Done():
		return fmt.Errorf("%s: the play does not get there: %w", a.phase.name, a.reader.ctx.Err())
	}
}

// finish lets the play go and reads the rest of the run.
func (a *actor) finish() error {
	a.play.goOn()
	if n := len(a.reader.events); n > 0 && a.reader.events[n-1].terminal() {
		a.reader.cut()
		return nil
	}
	return a.reader.read()
}
