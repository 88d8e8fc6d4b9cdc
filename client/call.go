package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agui"
)

// Call runs an agent that has an output, and returns the result of the run. IDs of the thread and the
// run that the input lacks are new ones; an input with both may be sent again, and starts one run.
//
//	plan, err := client.Call[Plan](ctx, c, "planner", client.Text("…"))
//
// The error is a [*RunError] if the run failed or was cancelled, a [*WaitingError] if it waits for a person, a
// time, an event or a tool of the client, a [*ResultError] if its result is not a T, or one of [Client.Run]. If
// ctx ends, the run continues: see [Client.Cancel]. A run that holds its stream open while it waits
// (forwardedProps.perdure.hold) blocks Call until the decisions are made.
func Call[T any](ctx context.Context, c *Client, agent string, input agui.RunAgentInput) (result T, err error) {
	if input.ThreadID == "" {
		input.ThreadID = newID("thread")
	}
	if input.RunID == "" {
		input.RunID = newID("run")
	}
	if input.ProtocolVersion == "" {
		input.ProtocolVersion = agui.Version
	}
	var last Event
	for event, err := range c.Run(ctx, agent, input) {
		if err != nil {
			return result, err
		}
		last = event
	}
	raw, err := resultOf(input, last.Event)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		var none T
		return none, &ResultError{input.ThreadID, input.RunID, raw, err}
	}
	return result, nil
}

// Text returns the input of a new thread with one message of the user.
func Text(text string) agui.RunAgentInput {
	message := agui.Message{ID: newID("msg"), Role: agui.RoleUser, Content: agui.TextContent(text)}
	return agui.RunAgentInput{ThreadID: newID("thread"), RunID: newID("run"), Messages: []agui.Message{message}}
}

// newID returns a random ID that begins with kind.
func newID(kind string) string { return kind + "-" + strings.ToLower(rand.Text()) }

// RunError reports a run that failed or was cancelled.
type RunError struct {
	ThreadID, RunID string
	// Code identifies the kind of the failure; cancelled if the run was cancelled.
	Code    string
	Message string
}

func (e *RunError) Error() string {
	return fmt.Sprintf("run %s failed: %s: %s", e.RunID, e.Code, e.Message)
}

// WaitingError reports a run that ended before it had a result, because it waits. After the decisions
// or the results a run of the thread continues it.
type WaitingError struct {
	ThreadID, RunID string
	// Interrupts are the open approvals, questions, limits and waits. WaitOf tells which of them are waits.
	Interrupts []agui.Interrupt
	// ToolCallIDs are the calls of the client's tools without a result.
	ToolCallIDs []string
}

func (e *WaitingError) Error() string {
	return fmt.Sprintf("run %s waits: it has %d open interrupts and %d tool calls of the client", e.RunID, len(e.Interrupts), len(e.ToolCallIDs))
}

// ResultError reports a run whose result does not decode into the type of the caller.
type ResultError struct {
	ThreadID, RunID string
	JSON            json.RawMessage // nil = the run has no result, because its agent has no output
	Err             error
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("the result of run %s: %v", e.RunID, e.Err)
}

func (e *ResultError) Unwrap() error { return e.Err }

// errNoResult is the Err of a ResultError without JSON.
var errNoResult = errors.New("there is none: the agent has no output")

// resultOf returns the result in the last event of a run.
func resultOf(input agui.RunAgentInput, last agui.Event) (json.RawMessage, error) {
	thread, run := input.ThreadID, input.RunID
	switch e := last.(type) {
	case *agui.RunError:
		return nil, &RunError{thread, run, e.Code, e.Message}
	case *agui.RunFinished:
		switch o := e.Outcome; {
		case o != nil && o.Type == agui.OutcomeCancelled:
			return nil, &RunError{thread, run, "cancelled", "the run was cancelled"}
		case o != nil && len(o.Interrupts)+len(o.PendingToolCallIDs) > 0:
			return nil, &WaitingError{thread, run, o.Interrupts, o.PendingToolCallIDs}
		}
		if result := (Event{Event: e}).Result(); result != nil {
			return result, nil
		}
	}
	return nil, &ResultError{thread, run, nil, errNoResult}
}
