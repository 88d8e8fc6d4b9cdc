package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// phase is a point in the course of a run.
type phase struct {
	name string
	// turn and at are the position at which the script pauses.
	turn, at int
	// shown reports whether an event is the last that a reader sees before the phase; nil = the
	// script's pause is enough.
	shown func(kit.Event) bool
	// next reports whether a record of the log ends the phase. It is set for phases in which
	// nothing can pause. Such a phase takes a few milliseconds, and the log shows whether a fault
	// hit it.
	next func(kit.Record) bool
	tool string // "" = observe
	// leaves is set for the phase in which the model call has left its workflow task. In the other
	// phases it has just begun.
	leaves bool
}

// Phases in the order of a run.
const (
	phaseAccepted  = "accepted"
	phaseAsked     = "model asked"
	phaseFirst     = "first token"
	phaseReasoning = "reasoning"
	phaseLeft      = "after its task"
	phaseArguments = "arguments"
	phaseTool      = "tool runs"
	phaseCharge    = "unsafe tool runs"
	phaseResult    = "tool done"
	phaseText      = "text"
	phaseLast      = "last token"
	phaseDone      = "model done"
	phaseEnded     = "ended"
)

// phases are the columns of the matrix.
var phases = []phase{
	{name: phaseAccepted, turn: 1, at: kit.BeforeFirstChunk, next: func(r kit.Record) bool { return r.Kind == "begin" }},
	{name: phaseAsked, turn: 1, at: kit.BeforeFirstChunk},
	{name: phaseFirst, turn: 1, at: 0, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.0")},
	{name: phaseReasoning, turn: 1, at: 2, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.2")},
	{name: phaseLeft, turn: 1, at: 3, shown: saysWord("REASONING_MESSAGE_CONTENT", "1.1.3"), leaves: true},
	{name: phaseArguments, turn: 1, at: kit.ChunksPerKind + 2, shown: saysWord("TOOL_CALL_ARGS", "1.1.1")},
	{name: phaseTool, turn: kit.TurnTool, at: kit.BeforeFirstChunk, shown: kit.OfType("TOOL_CALL_END")},
	{name: phaseCharge, turn: kit.TurnTool, at: kit.BeforeFirstChunk, shown: kit.OfType("TOOL_CALL_END"), tool: "charge"},
	{name: phaseResult, turn: 2, at: kit.BeforeFirstChunk, shown: kit.OfType("TOOL_CALL_RESULT"), next: func(r kit.Record) bool { return r.Kind == "begin" && r.Step == "2/model" }},
	{name: phaseText, turn: 2, at: 2, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.2")},
	{name: phaseLast, turn: 2, at: kit.ChunksPerKind - 1, shown: saysWord("TEXT_MESSAGE_CONTENT", "2.1.4")},
	{name: phaseDone, turn: kit.NoTurn, shown: kit.OfType("TEXT_MESSAGE_END"), next: func(r kit.Record) bool { return r.Kind == "terminal" }},
	{name: phaseEnded, turn: kit.NoTurn, shown: kit.Event.Terminal},
}

// saysWord returns a predicate for the event that has a word of the model's script.
func saysWord(eventType, word string) func(kit.Event) bool {
	return func(e kit.Event) bool {
		return e.Type == eventType && strings.Contains(e.Member("delta"), " "+word+" ")
	}
}

// brief reports whether nothing can pause in the phase.
func (ph phase) brief() bool { return ph.next != nil }

// observedRun is a run of the matrix, with its script, its reader and its fault.
type observedRun struct {
	phase     phase
	script    *kit.ModelScript
	reader    *kit.Follower
	faultedAt time.Time // when the fault was injected
	cancelled bool      // a client has cancelled it
	killed    bool      // its process was killed
	wantError string    // the code of RUN_ERROR that it must end with; "" = none
}

// newObservedRun prepares a run that pauses in a phase.
func newObservedRun(ctx context.Context, s *kit.PausableModel, ph phase, at *kit.Endpoint) *observedRun {
	tool := ph.tool
	if tool == "" {
		tool = "observe"
	}
	p := kit.NewModelScript(tool, ph.turn, ph.at)
	s.AddScript(p)
	f := at.NewUnrecordedFollower(ctx, kit.NewInput(p.Prompt()))
	f.Agent = "/v1/agents/observed/runs"
	return &observedRun{phase: ph, script: p, reader: f}
}

// start starts the run and waits until it is in its phase and its reader has seen that.
func (r *observedRun) start() error {
	if err := r.reader.Connect(); err != nil {
		return err
	}
	for r.phase.shown != nil {
		e, err := r.reader.Next()
		if err != nil {
			return fmt.Errorf("%s: %w", r.phase.name, err)
		}
		if r.phase.shown(e) {
			break
		}
		if e.Terminal() {
			return fmt.Errorf("%s: the run ended before: %s", r.phase.name, e.Data)
		}
	}
	if r.phase.brief() || r.phase.turn == kit.NoTurn {
		return nil
	}
	select {
	case <-r.script.Paused:
	case <-r.reader.Ctx.Done():
		return fmt.Errorf("%s: the script does not pause: %w", r.phase.name, r.reader.Ctx.Err())
	}
	if !r.phase.leaves {
		return nil
	}
	return kit.AwaitActivity(r.reader.Ctx, r.reader.Endpoint, r.reader.In, runs.ActivityCallModel)
}

// finish lets the run continue and reads it to its end.
func (r *observedRun) finish() error {
	r.script.Release()
	if n := len(r.reader.Events); n > 0 && r.reader.Events[n-1].Terminal() {
		r.reader.Cut()
		return nil
	}
	return r.reader.Read()
}
