package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/perdure/perdure/agui"
)

// Run starts a run, or attaches to it if it has begun with the same input, and shows it to its end.
// To stop reading, or to end the context, cancels nothing: see [Client.Cancel].
func (c *Client) Run(ctx context.Context, agent string, input agui.RunAgentInput) iter.Seq2[Event, error] {
	body, err := json.Marshal(input)
	if err != nil {
		return failed[Event](fmt.Errorf("client: %w", err))
	}
	r := &reader[Event]{client: c, decode: decodeEvent, last: Event.Ends}
	r.request = func(after string) request {
		if after == "" {
			return request{method: http.MethodPost, path: path("v1", "agents", agent, "runs"), query: c.acknowledged.query(input.ThreadID, ""), body: body}
		}
		return request{method: http.MethodGet, path: runPath(input.ThreadID, input.RunID) + "/events"}
	}
	return r.events(ctx)
}

// Events shows a run from its start, or behind a cursor, to its end.
func (c *Client) Events(ctx context.Context, thread, run, after string) iter.Seq2[Event, error] {
	r := &reader[Event]{client: c, decode: decodeEvent, last: Event.Ends, after: after}
	r.request = func(after string) request {
		q := c.acknowledged.query(thread, "")
		if after == "" {
			q.Set("protocolVersion", agui.Version)
		}
		return request{method: http.MethodGet, path: runPath(thread, run) + "/events", query: q}
	}
	return r.events(ctx)
}

// Following says how a thread is read.
type Following struct {
	// After is the cursor to go on behind; "" = begin with what the thread is.
	After string
	// Once ends behind the run that is active, or behind what there is. Otherwise it goes on with
	// run after run.
	Once bool
	// WaitFor is the cursor of a decision that another client has made: the thread is shown with
	// what came of it. What this client has decided is waited for in any case.
	WaitFor string
}

// Follow shows a thread: its history in as few events as possible, and then what happens.
func (c *Client) Follow(ctx context.Context, thread string, how Following) iter.Seq2[Event, error] {
	r := &reader[Event]{client: c, decode: decodeEvent, after: how.After, last: Event.Ends, more: true}
	r.request = func(after string) request {
		q := c.acknowledged.query(thread, how.WaitFor)
		if how.Once {
			q.Set("follow", "false")
		}
		if after == "" {
			q.Set("protocolVersion", agui.Version)
		}
		return request{method: http.MethodGet, path: threadPath(thread) + "/events", query: q}
	}
	return r.events(ctx)
}

func failed[E any](err error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		yield(none, err)
	}
}

func threadPath(thread string) string { return path("v1", "threads", thread) }

func runPath(thread, run string) string { return threadPath(thread) + path("runs", run) }

// command sends what changes something, and may be sent again.
func (c *Client) command(ctx context.Context, path string, body any) error {
	r, err := post(path, body)
	if err == nil {
		_, err = c.send(ctx, r)
	}
	return err
}

// Cancel cancels a run, which keeps what it has said. Of a run that is over nothing changes.
func (c *Client) Cancel(ctx context.Context, thread, run, reason string) error {
	var body any
	if reason != "" {
		body = map[string]string{"reason": reason}
	}
	return c.command(ctx, runPath(thread, run)+"/cancel", body)
}

// Pause stops the active run of a thread before its next step.
func (c *Client) Pause(ctx context.Context, thread string) error {
	return c.command(ctx, threadPath(thread)+"/pause", nil)
}

// Resume lets a paused run of a thread go on.
func (c *Client) Resume(ctx context.Context, thread string) error {
	return c.command(ctx, threadPath(thread)+"/resume", nil)
}

// Steered tells which run has taken a message.
type Steered struct {
	RunID    string `json:"runId"`
	Cursor   string `json:"cursor"`
	Repeated bool   `json:"repeated"`
}

// Steer says something to the run that is active on a thread.
func (c *Client) Steer(ctx context.Context, thread string, message agui.Message) (Document[Steered], error) {
	r, err := post(threadPath(thread)+"/messages", map[string]any{"message": message})
	if err != nil {
		return Document[Steered]{}, err
	}
	return document[Steered](ctx, c, r)
}
