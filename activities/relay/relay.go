// Package relay writes the run of a remote agent into a lane of the log, as package narration does with
// the answer of a model:
//
//	remote.Event ──► own IDs ──► stream.Attempt ──► clients
//	                    └──────► agui.Reducer ──► messages, calls and interrupts of the done record
//
// RUN_STARTED, RUN_FINISHED and RUN_ERROR are not written: the run of Perdure has its own. Neither are
// the events of the remote's framework (RAW, rawEvent): they are for its developers, have more bytes than
// all others, and can have what its clients must not see, such as the prompt of the system.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// RunKind is the kind of the IDs of remote runs (stream.Run.Identify).
const RunKind = "remote"

// Relay writes the events of one attempt of a remote run. A Relay is used by one goroutine. The caller
// owns the attempt, calls Add for each event, and finishes the attempt with the done record: with
// ClosingEvents, Messages, ChangedIDs and Interrupts.
type Relay struct {
	attempt *stream.Attempt
	agent   string
	run     stream.Run
	runID   string // the ID of the remote run: a run of Perdure may have several runs of the agent
	// known has the IDs of the thread by those that the remote knows, for items of earlier runs.
	known map[string]string
	// changed has the IDs that the remote has given to results after it has sent them, by the thread's.
	changed map[string]string
	// ofSubagent are the remote's IDs of subagents, and of their items.
	ofSubagent map[string]bool
	tools      []agui.Tool // that the remote may call
	// unanswered are the remote's IDs of the calls in the input that have no result.
	unanswered []string

	verifier agui.Verifier // of what was written, to find what is open
	reducer  *agui.Reducer
	started  []string // tool calls of this run, in order
	hasState bool     // the run has set the state: before, the reducer does not know it
	isReplay bool     // the events are of an earlier run
	// lifecycle are events of the run's lifecycle, from which Interrupts is read: its start, its end, and the
	// custom events that stand for interrupts.
	lifecycle []agui.Event
	end       *agui.RunFinished // nil = the run has not finished
	usage     []agui.TokenUsage // of the end of the run, or of its failure
	emitted   int               // events that the attempt has taken
	answers   []string          // IDs of the messages of AddAnswers
	unsent    []agui.Event      // that the attempt refused, because the run is cancelled
}

// RunError is a RUN_ERROR of the remote. Code and Message are the remote's, may be content, and have any
// length.
type RunError struct{ Code, Message string }

// Error implements error. The text has no content.
func (e *RunError) Error() string {
	if code := e.ShownCode(); code != "" {
		return "the remote agent has sent RUN_ERROR with the code " + code
	}
	return "the remote agent has sent RUN_ERROR"
}

// shownCode matches the codes that are shown.
var shownCode = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// ShownCode returns the code if it has the form of an identifier; "" = there is none, or it may be content.
func (e *RunError) ShownCode() string {
	if !shownCode.MatchString(e.Code) {
		return ""
	}
	return e.Code
}

// New returns a relay of a run with the input in, whose messages have the remote's IDs. known are the
// thread's IDs of what in names, by the remote's; the relay changes it.
func New(attempt *stream.Attempt, agent string, run stream.Run, in *agui.RunAgentInput, known map[string]string) *Relay {
	r := &Relay{
		attempt: attempt, agent: agent, run: run, runID: in.RunID, known: known, tools: in.Tools,
		ofSubagent: map[string]bool{},
		unanswered: unansweredCalls(in.Messages), reducer: agui.NewReducer(nil, nil),
	}
	_ = r.verifier.Check(&agui.RunStarted{ThreadID: run.Thread.ID, RunID: run.ID})
	return r
}

// Add writes an event, and returns when the attempt has taken it. The error is the attempt's, a *RunError,
// or a *remote.Error for an event that breaks the protocol.
func (r *Relay) Add(ctx context.Context, received agui.Event) error {
	switch e := received.(type) {
	case *agui.RunStarted:
		r.isReplay = e.RunID != r.runID && strings.HasPrefix(e.RunID, RunKind+"_")
		r.lifecycle = []agui.Event{e}
		return nil
	case *agui.RunFinished:
		if !r.isReplay {
			r.lifecycle, r.end, r.usage = append(r.lifecycle, e), e, e.Usage
		}
		return nil
	case *agui.RunError:
		if r.isReplay {
			return nil
		}
		r.usage = e.Usage
		return &RunError{Code: e.Code, Message: e.Message}
	case *agui.Custom:
		if !r.isReplay && remote.IsInterrupt(e) { // clients that know such events answer them in their own form
			r.lifecycle = append(r.lifecycle, &agui.Custom{Name: e.Name, Value: e.Value, BaseEvent: e.BaseEvent})
		}
	case *agui.StepStarted:
		e.StepName = r.agent + "/" + e.StepName // names of open steps are unique in a run
	case *agui.StepFinished:
		e.StepName = r.agent + "/" + e.StepName
	}
	if _, isRaw := received.(*agui.Raw); isRaw || r.isReplay || r.repeatsState(received) || r.repeatsCall(received) {
		return nil
	}
	received.Base().RawEvent = nil
	r.begin(received, agui.Owner(received))
	agui.RenameIDs(received, r.OwnID)
	if snapshot, ok := received.(*agui.MessagesSnapshot); ok {
		return r.addSnapshot(ctx, snapshot)
	}
	return r.emit(ctx, received)
}

// Result returns the result with which the run has finished; nil = it has none.
func (r *Relay) Result() json.RawMessage {
	if r.end == nil {
		return nil
	}
	return r.end.Result
}

// repeatsState reports whether an event sets the state to the value that it has: LangGraph sends its state
// after each event of a node.
func (r *Relay) repeatsState(e agui.Event) bool {
	snapshot, ok := e.(*agui.StateSnapshot)
	return ok && r.hasState && bytes.Equal(snapshot.Snapshot, r.reducer.State())
}

// unansweredCalls returns the IDs of the calls that have no result among the messages.
func unansweredCalls(messages []agui.Message) (ids []string) {
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			if !hasResult(messages, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// repeatsCall reports whether an event announces a call again that waits for its result since an earlier
// run: LangGraph does so when a tool that has interrupted the run is resumed.
func (r *Relay) repeatsCall(e agui.Event) bool {
	var id string
	switch e := e.(type) {
	case *agui.ToolCallStart:
		id = e.ToolCallID
	case *agui.ToolCallArgs:
		id = e.ToolCallID
	case *agui.ToolCallEnd:
		id = e.ToolCallID
	}
	return id != "" && slices.Contains(r.unanswered, id)
}

// emit hands events to the attempt. Events that it refuses are kept for ClosingEvents: a cancel ends ctx before
// the run is complete. An event in an illegal order is a *remote.Error: the client cannot find it if the
// stream was continued inside a run, or has several runs.
func (r *Relay) emit(ctx context.Context, events ...agui.Event) error {
	for _, e := range events {
		if err := r.verifier.Check(e); err != nil {
			return protocolError(e, err)
		}
		_ = r.reducer.Apply(e) // a change that does not apply has no effect on clients either
		switch e := e.(type) {
		case *agui.ToolCallStart:
			r.started = append(r.started, e.ToolCallID)
		case *agui.StateSnapshot:
			r.hasState = true
		case *agui.MessagesSnapshot:
			for _, m := range e.Messages {
				for _, c := range m.ToolCalls {
					r.started = append(r.started, c.ID)
				}
			}
		}
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

// protocolError returns the failure of a run whose event does not fit the events before it. err is that
// of the verifier.
func protocolError(e agui.Event, err error) *remote.Error {
	invalid := &remote.ProtocolError{Rule: remote.RuleMalformed, Type: e.EventType(), Err: err}
	if order, ok := errors.AsType[*agui.OrderError](err); ok {
		invalid.Rule = order.Rule
	}
	return &remote.Error{
		Kind: remote.KindProtocol, Sent: true, Received: true, Err: invalid,
		Message: fmt.Sprintf("%s does not fit the events before it: it breaks the rule %s", invalid.Type, invalid.Rule),
	}
}

// Interrupts returns what the remote has asked, with its own IDs.
func (r *Relay) Interrupts() []remote.Interrupt { return remote.Interrupts(r.lifecycle) }

// Usage returns the usage that the remote has reported with the end of the run, also of one that has
// failed.
func (r *Relay) Usage() (usage []runs.Usage) {
	for _, u := range r.usage {
		usage = append(usage, runs.Usage{
			Provider: u.Provider, Model: u.Model, Input: u.InputTokens, Output: u.OutputTokens, Total: u.TotalTokens,
			Reasoning: u.ReasoningTokens, CachedInput: u.CachedInputTokens, CacheWrite: u.CacheWriteInputTokens, Calls: 1,
		})
	}
	return usage
}
