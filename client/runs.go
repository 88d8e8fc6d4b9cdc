package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/perdure/perdure/agui"
)

// Run starts a run, or attaches to it if it has begun with the same input, and yields its events to
// the last one. The run continues if the caller ends the iteration or the context: see
// [Client.Cancel].
func (c *Client) Run(ctx context.Context, agent string, input agui.RunAgentInput) iter.Seq2[Event, error] {
	return c.RunRevision(ctx, agent, "", input)
}

// RunRevision is Run with a revision of the agent, published or a draft; "" = the current one. Only
// callers that may publish the agent may name another one.
func (c *Client) RunRevision(ctx context.Context, agent, revision string, input agui.RunAgentInput) iter.Seq2[Event, error] {
	body, err := json.Marshal(input)
	if err != nil {
		return errorOnly[Event](fmt.Errorf("client: %w", err))
	}
	r := &reader[Event]{client: c, decode: decodeEvent, isLast: Event.Ends}
	r.request = func(after string) request {
		if after == "" {
			q := c.acknowledged.query(input.ThreadID, "")
			if revision != "" {
				q.Set("revision", revision)
			}
			return request{method: http.MethodPost, path: path("v1", "agents", agent, "runs"), query: q, body: body}
		}
		return request{method: http.MethodGet, path: runPath(input.ThreadID, input.RunID) + "/events"}
	}
	return r.events(ctx)
}

// Events yields the events of a run to the last one, after a cursor; "" = from its start.
func (c *Client) Events(ctx context.Context, thread, run, after string) iter.Seq2[Event, error] {
	r := &reader[Event]{client: c, decode: decodeEvent, isLast: Event.Ends, after: after}
	r.request = func(after string) request {
		q := c.acknowledged.query(thread, "")
		if after == "" {
			q.Set("protocolVersion", agui.Version)
		}
		return request{method: http.MethodGet, path: runPath(thread, run) + "/events", query: q}
	}
	return r.events(ctx)
}

// FollowOptions selects what Client.Follow yields.
type FollowOptions struct {
	// After is the cursor to continue after; "" = begin with the history of the thread.
	After string
	// Once ends the stream after the active run, or after the history if no run is active.
	// Otherwise the stream continues with run after run.
	Once bool
	// WaitFor is the cursor of a decision that another client has made: the stream begins when the
	// log has the effect of that decision. Decisions of this client are waited for in any case.
	WaitFor string
}

// Follow yields a thread: its history in as few events as possible, and then new events as they
// happen.
func (c *Client) Follow(ctx context.Context, thread string, f FollowOptions) iter.Seq2[Event, error] {
	r := &reader[Event]{client: c, decode: decodeEvent, after: f.After, isLast: Event.Ends, hasLaterRuns: true}
	r.request = func(after string) request {
		q := c.acknowledged.query(thread, f.WaitFor)
		if f.Once {
			q.Set("follow", "false")
		}
		if after == "" {
			q.Set("protocolVersion", agui.Version)
		}
		return request{method: http.MethodGet, path: threadPath(thread) + "/events", query: q}
	}
	return r.events(ctx)
}

// errorOnly returns an iteration that yields only an error.
func errorOnly[E any](err error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		yield(none, err)
	}
}

func threadPath(thread string) string { return path("v1", "threads", thread) }

// runPath returns the path of a run.
func runPath(thread, run string) string { return threadPath(thread) + path("runs", run) }

// command sends an idempotent request whose response has no content of interest.
func (c *Client) command(ctx context.Context, path string, body any) error {
	r, err := post(path, body)
	if err == nil {
		_, err = c.send(ctx, r)
	}
	return err
}

// Cancel requests that a run is cancelled. The messages that it has written stay. If the run has
// ended, nothing happens.
func (c *Client) Cancel(ctx context.Context, thread, run, reason string) error {
	var body any
	if reason != "" {
		body = map[string]string{"reason": reason}
	}
	return c.command(ctx, runPath(thread, run)+"/cancel", body)
}

// Pause pauses the active run of a thread before its next step.
func (c *Client) Pause(ctx context.Context, thread string) error {
	return c.command(ctx, threadPath(thread)+"/pause", nil)
}

// Resume ends the pause of a run.
func (c *Client) Resume(ctx context.Context, thread string) error {
	return c.command(ctx, threadPath(thread)+"/resume", nil)
}

// Steered is the run that has accepted a message, with the cursor of the message.
type Steered struct {
	RunID    string `json:"runId"`
	Cursor   string `json:"cursor"`
	Repeated bool   `json:"repeated"`
}

// Steer sends a user message to the active run of a thread: its next model call receives the
// message. A repeated message with the same ID is accepted once (Repeated).
func (c *Client) Steer(ctx context.Context, thread string, message agui.Message) (Document[Steered], error) {
	r, err := post(threadPath(thread)+"/messages", map[string]any{"message": message})
	if err != nil {
		return Document[Steered]{}, err
	}
	return document[Steered](ctx, c, r)
}
