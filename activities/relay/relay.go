// Package relay writes the run of a remote agent into a lane of the log, as package narration does with
// the answer of a model:
//
//	remote.Event ──► own IDs ──► stream.Attempt ──► clients
//	                    └──────► agui.Reducer ──► messages, calls and interrupts of the done record
//
// What the run's own lifecycle says (RUN_STARTED, RUN_FINISHED, RUN_ERROR) is not written: the run of
// Perdure has its own.
package relay

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// RunKind is the kind of the IDs of remote runs (stream.Run.Identify).
const RunKind = "remote"

// Relay writes the events of one attempt of a remote run. A Relay is used by one goroutine. The caller
// owns the attempt, calls Add for each event, and writes the done record with the results of Close and
// Messages.
type Relay struct {
	attempt *stream.Attempt
	request Request

	identity
	earlier  []agui.Message // that the remote received, with the thread's IDs
	verifier agui.Verifier  // of what was written, to find what is open
	reducer  *agui.Reducer  // of the run's own messages
	started  []string       // tool calls of this run, in order
	emitted  int            // events that the attempt has taken
	unsent   []agui.Event   // that the attempt refused, because the run is cancelled
	answers  []string       // IDs of the messages of AddAnswers

	isReplay bool // the events are of an earlier run
	asking   []agui.Event
	end      *agui.RunFinished // nil = the run has not finished
	// last are the messages of the last MESSAGES_SNAPSHOT, with the remote's IDs; nil = none came, or
	// messages have begun since.
	last []agui.Message
}

// RunError is a RUN_ERROR of the remote.
type RunError struct{ Code, Message string }

// Error implements error.
func (e *RunError) Error() string { return fmt.Sprintf("the remote agent has failed: %s", e.Code) }

// New returns a relay of a run.
func New(attempt *stream.Attempt, request Request) *Relay {
	r := &Relay{attempt: attempt, request: request, identity: newIdentity(request), reducer: agui.NewReducer(nil, nil)}
	r.earlier = agui.RenameMessageIDs(request.Input.Messages, func(id string) string { return cmp.Or(r.known[id], id) })
	_ = r.verifier.Check(&agui.RunStarted{ThreadID: request.Run.Thread.ID, RunID: request.Run.ID})
	return r
}

// Add writes an event, and returns when the attempt has taken it. The error is the attempt's, or a
// *RunError.
func (r *Relay) Add(ctx context.Context, received agui.Event) error {
	switch e := received.(type) {
	case *agui.RunStarted:
		r.isReplay = e.RunID != r.request.Input.RunID && strings.HasPrefix(e.RunID, RunKind+"_")
		r.asking = []agui.Event{e}
		return nil
	case *agui.RunFinished:
		if !r.isReplay {
			r.asking, r.end = append(r.asking, e), e
		}
		return nil
	case *agui.RunError:
		if r.isReplay {
			return nil
		}
		return &RunError{Code: e.Code, Message: e.Message}
	}
	if r.isReplay {
		return nil
	}
	switch e := received.(type) {
	case *agui.Custom:
		if remote.IsInterrupt(e) { // clients that know such events answer them in their own form
			r.asking = append(r.asking, &agui.Custom{Name: e.Name, Value: e.Value, BaseEvent: e.BaseEvent})
		}
	case *agui.StepStarted:
		e.StepName = r.request.Agent + "/" + e.StepName // names of open steps are unique in a run
	case *agui.StepFinished:
		e.StepName = r.request.Agent + "/" + e.StepName
	case *agui.MessagesSnapshot:
		return r.addSnapshot(ctx, e.Messages)
	}
	if r.isRepetition(received) {
		return nil
	}
	if r.begin(received) {
		r.last = nil
	}
	agui.RenameIDs(received, r.OwnID)
	return r.emit(ctx, received)
}

// emit hands events to the attempt. Events that it refuses are kept for Close: a cancel ends ctx before
// the run is complete.
func (r *Relay) emit(ctx context.Context, events ...agui.Event) error {
	for _, e := range events {
		_ = r.verifier.Check(e) // the client has checked the order
		switch e := e.(type) {
		case *agui.ToolCallStart:
			r.started = append(r.started, e.ToolCallID)
		case *agui.MessagesSnapshot:
			_ = r.reducer.Apply(&agui.MessagesSnapshot{Messages: r.withoutBefore(e.Messages)})
			continue
		}
		_ = r.reducer.Apply(e) // a change that does not apply has no effect on clients either
	}
	if len(events) == 0 {
		return nil
	}
	err := r.attempt.Emit(ctx, events...)
	if err != nil {
		r.unsent = append(r.unsent, events...)
		return err
	}
	r.emitted += len(events)
	return nil
}

// Interrupts returns what the remote has asked, with its own IDs.
func (r *Relay) Interrupts() []remote.Interrupt { return remote.Interrupts(r.asking) }

// Usage returns the usage that the remote has reported.
func (r *Relay) Usage() (usage []runs.Usage) {
	if r.end == nil {
		return nil
	}
	for _, u := range r.end.Usage {
		usage = append(usage, runs.Usage{
			Provider: u.Provider, Model: u.Model, Input: u.InputTokens, Output: u.OutputTokens, Total: u.TotalTokens,
			Reasoning: u.ReasoningTokens, CachedInput: u.CachedInputTokens, CacheWrite: u.CacheWriteInputTokens, Calls: 1,
		})
	}
	return usage
}
