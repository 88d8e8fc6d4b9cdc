package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// phase is a moment in the life of a run.
type phase struct {
	name string
	// turn and at are where its play stands still.
	turn, at int
	// shown tells whether an event is what a reader sees last before the moment; nil = the play's
	// standing still is enough.
	shown func(kit.Event) bool
	// next is the record of the log that ends the moment, where nothing can be made to stand still:
	// such a moment is a few milliseconds long, and whether it was hit is seen in the log.
	next func(kit.Record) bool
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
	{name: phaseAccepted, turn: 1, at: kit.Asked, next: func(r kit.Record) bool { return r.Kind == "open" }},
	{name: phaseAsked, turn: 1, at: kit.Asked},
	{name: phaseFirst, turn: 1, at: 0, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.0")},
	{name: phaseReasoning, turn: 1, at: 2, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.2")},
	{name: phaseArguments, turn: 1, at: kit.Pieces + 2, shown: saysWord("TOOL_CALL_ARGS", "1.1.1")},
	{name: phaseTool, turn: kit.TurnTool, at: kit.Asked, shown: kit.OfType("TOOL_CALL_END")},
	{name: phaseCharge, turn: kit.TurnTool, at: kit.Asked, shown: kit.OfType("TOOL_CALL_END"), tool: "charge"},
	{name: phaseResult, turn: 2, at: kit.Asked, shown: kit.OfType("TOOL_CALL_RESULT"), next: func(r kit.Record) bool { return r.Kind == "open" && r.Step == "2/model" }},
	{name: phaseText, turn: 2, at: 2, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.2")},
	{name: phaseLast, turn: 2, at: kit.Pieces - 1, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.4")},
	{name: phaseDone, turn: kit.Nowhere, shown: kit.OfType("TEXT_MESSAGE_END"), next: func(r kit.Record) bool { return r.Kind == "terminal" }},
	{name: phaseEnded, turn: kit.Nowhere, shown: kit.Event.Terminal},
}

// saysWord fits the event with a word of a model's script.
func saysWord(eventType, word string) func(kit.Event) bool {
	return func(e kit.Event) bool {
		return e.Type == eventType && strings.Contains(e.Member("delta"), " "+word+" ")
	}
}

// brief reports whether nothing can be made to stand still in the phase.
func (ph phase) brief() bool { return ph.next != nil }

// observedRun is a run of the matrix: a play, who reads it, and what struck it.
type observedRun struct {
	phase  phase
	play   *kit.ModelScript
	reader *kit.Follower
	struck time.Time // when the fault began
	cancel bool      // it was cancelled
	killed bool      // whoever ran it was
	unsaid string    // RUN_ERROR's code, if it is to end so
}

// enter prepares a run that stands still in a phase.
func enter(ctx context.Context, s *kit.PausableModel, ph phase, at *kit.Endpoint) *observedRun {
	tool := ph.tool
	if tool == "" {
		tool = "observe"
	}
	p := kit.NewModelScript(tool, ph.turn, ph.at)
	s.Add(p)
	f := at.Quiet(ctx, kit.NewInput(p.Prompt()))
	f.Agent = "/v1/agents/performer/runs"
	return &observedRun{phase: ph, play: p, reader: f}
}

// reach starts the run and waits until it is in its phase, and its reader has seen that.
func (a *observedRun) reach() error {
	if err := a.reader.Connect(); err != nil {
		return err
	}
	for a.phase.shown != nil {
		e, err := a.reader.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", a.phase.name, err)
		}
		if a.phase.shown(e) {
			break
		}
		if e.Terminal() {
			return fmt.Errorf("%s: the run ended before: %s", a.phase.name, e.Data)
		}
	}
	if a.phase.brief() || a.phase.turn == kit.Nowhere {
		return nil
	}
	select {
	case <-a.play.Held:
		return nil
	case <-a.reader.Ctx.Done():
		return fmt.Errorf("%s: the play does not get there: %w", a.phase.name, a.reader.Ctx.Err())
	}
}

// finish lets the play go and reads the rest of the run.
func (a *observedRun) finish() error {
	a.play.GoOn()
	if n := len(a.reader.Events); n > 0 && a.reader.Events[n-1].Terminal() {
		a.reader.Cut()
		return nil
	}
	return a.reader.Read()
}
