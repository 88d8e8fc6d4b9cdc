package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/perdure/perdure/agui"
)

// TracedRun is the run of a trace.
type TracedRun struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// WorkflowID is the ID of the thread's workflow in Temporal.
	WorkflowID string `json:"workflowId"`
	Agent      string `json:"agent"`
	Revision   string `json:"revision"`
	Continues  string `json:"continues"` // the run that this one continues without an input; "" = none
	// Event is the event that started the run; nil = none did.
	Event *TriggerEvent `json:"event"`
	// Status is running, waiting, finished, failed or cancelled. Outcome is that of a ThreadRun.
	Status    string            `json:"status"`
	Outcome   string            `json:"outcome"`
	StartedAt time.Time         `json:"startedAt"`
	EndedAt   time.Time         `json:"endedAt"` // zero = it is active
	Cursor    string            `json:"cursor"`  // of the last record that the trace has
	Usage     []agui.TokenUsage `json:"usage"`
	Cost      *SpanCost         `json:"cost"`
	Error     *SpanError        `json:"error"`
	Truncated bool              `json:"truncated"` // spans are left out
}

// Trace is a run with its spans, in the order in which they began. The first span is the run.
type Trace struct {
	TracedRun

	Spans []Span `json:"spans"`
}

// Span is a part of a run. Texts are empty, and pointers nil, if the span has no such value.
type Span struct {
	ID       string `json:"id"` // the same in every trace of the run
	ParentID string `json:"parentId"`
	// Kind is run, turn, step, model, tool, interrupt, subagent, branch, wait or compensation.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Status is running, waiting, finished, failed or cancelled.
	Status        string    `json:"status"`
	StartedAt     time.Time `json:"startedAt"`
	EndedAt       time.Time `json:"endedAt"` // zero = it has not ended
	ToolCallID    string    `json:"toolCallId"`
	MessageID     string    `json:"messageId"`
	InterruptID   string    `json:"interruptId"`
	StepName      string    `json:"stepName"`
	Agent         string    `json:"agent"`
	Model         string    `json:"model"`
	SubagentRunID string    `json:"subagentRunId"`
	Decision      string    `json:"decision"` // how the interrupt was decided
	// Awaits is the time or the event for which an interrupt waits, only with Kind, Event, Match and Until;
	// nil = people or the client decide it.
	Awaits *Wait            `json:"awaits"`
	Usage  *agui.TokenUsage `json:"usage"`
	Cost   *SpanCost        `json:"cost"`
	Error  *SpanError       `json:"error"`
	// Attempts are all attempts, if there was more than one, or one has failed or waited.
	Attempts []SpanAttempt `json:"attempts"`
	// Retry is set while a failed call is attempted again.
	Retry *SpanRetry `json:"retry"`
	// FirstCursor is the cursor of the first event of the span, LastCursor is after the last one.
	FirstCursor string `json:"firstCursor"`
	LastCursor  string `json:"lastCursor"`
}

// SpanAttempt is an attempt of a call.
type SpanAttempt struct {
	Number    int        `json:"number"` // from 1
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   time.Time  `json:"endedAt"` // zero = it is running
	Status    string     `json:"status"`
	Error     *SpanError `json:"error"`
	Model     string     `json:"model"` // provider/model that it has called; "" = none
	// Wait is how long the attempt has waited before it could call its model; nil = it has not.
	Wait *struct {
		StartedAt time.Time `json:"startedAt"`
		EndedAt   time.Time `json:"endedAt"` // zero = it waits
	} `json:"wait"`
	Usage *agui.TokenUsage `json:"usage"`
	// Withdrawn is what the attempt had streamed before clients dropped it; nil = nothing.
	Withdrawn *struct {
		Text      string `json:"text"`
		Reasoning string `json:"reasoning"`
		ToolCalls []struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"toolCalls"`
		Truncated bool `json:"truncated"` // it had streamed more
	} `json:"withdrawn"`
}

// SpanRetry tells that a call is attempted again after failures.
type SpanRetry struct {
	Attempt int        `json:"attempt"` // the next one, or the one that is running
	Error   *SpanError `json:"error"`
	Since   time.Time  `json:"since"`  // of the first failure
	NextAt  time.Time  `json:"nextAt"` // zero = the attempt is running, or the time is unknown
}

// SpanError is why a span or an attempt has failed.
type SpanError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do about it; "" = nothing is known
}

// SpanCost is an amount of money.
type SpanCost struct {
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"` // "" = unknown
}

// TraceEvent is an event of the trace of an active run.
type TraceEvent struct {
	// Type is trace, spans or end. The first event of a connection has the Trace, a later one the Run
	// and the Spans that began or changed.
	Type  string     `json:"type"`
	Trace *Trace     `json:"trace"`
	Run   *TracedRun `json:"run"`
	Spans []Span     `json:"spans"`
	// JSON is the event as received.
	JSON json.RawMessage `json:"-"`
}

// traceEnd is the type of the last event of a trace.
const traceEnd = "end"

// Trace returns the trace of a run as of now: its spans with all attempts.
func (c *Client) Trace(ctx context.Context, thread, run string) (Document[Trace], error) {
	return document[Trace](ctx, c, get(runPath(thread, run)+"/trace", c.acknowledged.query(thread, "")))
}

// TraceEvents yields the trace of a run, and then the spans that begin or change, until the run ends.
// After a lost connection it begins again with the whole trace. It yields at most one error, as the
// last element.
func (c *Client) TraceEvents(ctx context.Context, thread, run string) iter.Seq2[TraceEvent, error] {
	return func(yield func(TraceEvent, error) bool) {
		pace := c.pace()
		for {
			err := c.readTrace(ctx, runPath(thread, run)+"/trace", pace, yield)
			if err == nil {
				return
			}
			if err = pace.waitBeforeRetry(ctx, err); err != nil {
				yield(TraceEvent{}, err)
				return
			}
		}
	}
}

// readTrace yields the events of one connection. It returns nil after the last event, or if the
// caller has stopped reading.
func (c *Client) readTrace(ctx context.Context, path string, pace *pace, yield func(TraceEvent, error) bool) error {
	conn, err := c.open(ctx, request{method: http.MethodGet, path: path, header: map[string]string{"Accept": streamType}})
	if err != nil {
		return err
	}
	defer conn.close()
	frames := newFrames(conn, maxResponseBytes)
	for {
		f, err := frames.next()
		switch {
		case errors.Is(err, io.EOF): // the run has not ended
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		pace.reset()
		event := TraceEvent{JSON: f.data}
		if err := json.Unmarshal(f.data, &event); err != nil {
			return &FrameError{fmt.Errorf("trace: %w", err)}
		}
		if !yield(event, nil) || event.Type == traceEnd {
			return nil
		}
	}
}
