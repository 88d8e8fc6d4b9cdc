package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/perdure/perdure/agui"
)

// ThreadItem is a thread in a list.
type ThreadItem struct {
	ThreadID  string            `json:"threadId"`
	Title     string            `json:"title"` // "" until a user has sent text
	Metadata  map[string]string `json:"metadata"`
	Agent     string            `json:"agent"`
	RunID     string            `json:"runId"`  // the last run that began
	Status    string            `json:"status"` // running, paused, waiting, failed or idle
	CreatedAt time.Time         `json:"createdAt"`
	UpdatedAt time.Time         `json:"updatedAt"`
	Owner     string            `json:"owner"` // "" = an anonymous caller
	Shared    bool              `json:"shared"`
	// WaitingFor has the kinds of the interrupts with which the last run ended: approval, question,
	// limit, client_tool, timer and event.
	WaitingFor []string `json:"waitingFor"`
	// Tokens and Cost are of all models of the ended runs. Tokens is nil if they called no model, Cost
	// if no model has a price.
	Tokens   *Tokens   `json:"tokens"`
	Retrying *Retrying `json:"retrying"` // nil = no activity is retried
	Stuck    *Stuck    `json:"stuck"`    // only with ThreadFilter.Stuck
	Cost     *Cost     `json:"cost"`
}

// Stuck tells why a run makes no progress.
type Stuck struct {
	Reason    string    `json:"reason"` // what is wrong, and what an operator should do
	TaskQueue string    `json:"taskQueue"`
	Since     time.Time `json:"since"`
}

// Retrying is a failed attempt of an activity that is attempted again.
type Retrying struct {
	Activity string    `json:"activity"`
	Name     string    `json:"name"`
	Attempt  int       `json:"attempt"`
	Error    string    `json:"error"`
	Since    time.Time `json:"since"`
}

// Tokens are numbers of tokens.
type Tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// Cost is an amount of money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Thread is the summary of a thread.
type Thread struct {
	ThreadID  string            `json:"threadId"`
	Title     string            `json:"title"` // "" until a user has sent text
	Metadata  map[string]string `json:"metadata"`
	Agent     string            `json:"agent"`
	RunID     string            `json:"runId"`  // the last run that began
	Status    string            `json:"status"` // running, paused, waiting, failed or idle
	CreatedAt time.Time         `json:"createdAt"`
	UpdatedAt time.Time         `json:"updatedAt"`
	// Event is the event that started the last run, or the run that it continues; nil = none did.
	Event *TriggerEvent `json:"event"`
	// Waiting are the open interrupts; nil = there are none.
	Waiting *struct {
		Interrupts  []agui.Interrupt `json:"interrupts"`
		ToolCallIDs []string         `json:"toolCallIds"`
	} `json:"waiting"`
	Retrying *Retrying         `json:"retrying"` // nil = no activity is retried
	Stuck    *Stuck            `json:"stuck"`    // nil = the run makes progress, or waits for people
	Runs     int               `json:"runs"`
	Messages int               `json:"messages"`
	Usage    []agui.TokenUsage `json:"usage"`
	// Estimated is the part of Usage that is estimated; nil = no model call was cut.
	Estimated *EstimatedUsage `json:"estimated"`
	Cost      *Cost           `json:"cost"` // of the ended runs; nil = no model has a price
}

// EstimatedUsage is the part of a usage that is estimated: of model calls whose answer was cut
// before the provider reported its usage. The usage includes it.
type EstimatedUsage struct {
	// Calls is the number of these calls.
	Calls int64             `json:"calls"`
	Usage []agui.TokenUsage `json:"usage"`
}

// ThreadFilter selects threads. Empty fields select all.
type ThreadFilter struct {
	// Text is in the title or in the metadata, in whatever case.
	Text   string
	Agent  string
	Owner  string
	Status string
	// WaitingFor is approval, question, limit, client_tool, timer or event.
	WaitingFor string
	// Retrying selects the threads whose active run is retrying.
	Retrying bool
	// Stuck selects the threads whose active run makes no progress. A page may have fewer items than
	// its limit, and still a next cursor.
	Stuck bool
	// MinCost and MaxCost bound the cost of the ended runs: amounts such as 0.5.
	MinCost, MaxCost string
	// The bounds are times in RFC 3339.
	CreatedAfter, CreatedBefore, UpdatedAfter, UpdatedBefore string
	Paging
}

// Threads returns a page of threads, last updated first.
func (c *Client) Threads(ctx context.Context, f ThreadFilter) (Document[Page[ThreadItem]], error) {
	q := f.query("q", f.Text, "agent", f.Agent, "owner", f.Owner, "status", f.Status, "waitingFor", f.WaitingFor, "minCost", f.MinCost, "maxCost", f.MaxCost,
		"createdAfter", f.CreatedAfter, "createdBefore", f.CreatedBefore, "updatedAfter", f.UpdatedAfter, "updatedBefore", f.UpdatedBefore)
	if f.Retrying {
		q.Set("retrying", "true")
	}
	if f.Stuck {
		q.Set("stuck", "true")
	}
	return document[Page[ThreadItem]](ctx, c, get("/v1/threads", q))
}

// Thread returns the summary of one thread.
func (c *Client) Thread(ctx context.Context, thread string) (Document[Thread], error) {
	return document[Thread](ctx, c, get(threadPath(thread), c.acknowledged.query(thread, "")))
}

// Messages returns a page of the messages of a thread, in order.
func (c *Client) Messages(ctx context.Context, thread string, p Paging) (Document[Page[agui.Message]], error) {
	return document[Page[agui.Message]](ctx, c, get(threadPath(thread)+"/messages", c.acknowledged.addTo(p.query(), thread)))
}

// State returns the state of a thread, any JSON value.
func (c *Client) State(ctx context.Context, thread string) (json.RawMessage, error) {
	answer, err := document[struct{ State json.RawMessage }](ctx, c, get(threadPath(thread)+"/state", c.acknowledged.query(thread, "")))
	return answer.Value.State, err
}

// TriggerEvent identifies the event that started a run, by a trigger of the run's agent.
type TriggerEvent struct {
	// ID and Source identify the event, as in CloudEvents.
	ID     string `json:"id"`
	Source string `json:"source"`
	Type   string `json:"type"`
}

// ThreadRun is the summary of a run.
type ThreadRun struct {
	RunID   string `json:"runId"`
	Segment int    `json:"segment"` // number of the part of a run whose interrupts were decided under the same ID, from 1
	Agent   string `json:"agent"`
	// Event is the event that started the run; nil = none did.
	Event     *TriggerEvent `json:"event"`
	StartedAt time.Time     `json:"startedAt"`
	EndedAt   time.Time     `json:"endedAt"` // zero = it is active
	Outcome   string        `json:"outcome"`
	Code      string        `json:"code"` // of the error
	// Usage is what the run used; nil while it is active. Estimated is the estimated part of it;
	// nil = none.
	Usage     []agui.TokenUsage `json:"usage"`
	Estimated *EstimatedUsage   `json:"estimated"`
	// Result is the result of a run that succeeded, also null; nil = its agent has no output. Only
	// [Client.ThreadRun] sets it.
	Result json.RawMessage `json:"result"`
}

// ThreadRun returns the summary of a run, with its result.
func (c *Client) ThreadRun(ctx context.Context, thread, run string) (Document[ThreadRun], error) {
	return document[ThreadRun](ctx, c, get(runPath(thread, run), c.acknowledged.query(thread, "")))
}

// Runs returns a page of the runs of a thread, newest first.
func (c *Client) Runs(ctx context.Context, thread string, p Paging) (Document[Page[ThreadRun]], error) {
	return document[Page[ThreadRun]](ctx, c, get(threadPath(thread)+"/runs", c.acknowledged.addTo(p.query(), thread)))
}

// ForkPoint is a place in a run where a fork may begin.
type ForkPoint struct {
	Cursor string    `json:"cursor"`
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"` // turn, step or end
	Name   string    `json:"name"` // path of the step, or name of the turn; "" = the end of the run
	// MessageID is the ID of the last message; "" = there is none.
	MessageID string `json:"messageId"`
}

// ForkPoints returns where a run can be forked, in the order of the run.
func (c *Client) ForkPoints(ctx context.Context, thread, run string) (Document[Page[ForkPoint]], error) {
	return document[Page[ForkPoint]](ctx, c, get(runPath(thread, run)+"/forkpoints", c.acknowledged.query(thread, "")))
}

// Fork is a thread that begins with the messages and the state of another one.
type Fork struct {
	ThreadID   string `json:"threadId"`
	ForkedFrom struct {
		ThreadID string `json:"threadId"`
		RunID    string `json:"runId"`
		At       string `json:"at"` // cursor of the step; "" = the end of the run
	} `json:"forkedFrom"`
}

// Fork creates the thread to with the messages and the state that a thread had at the cursor of a
// [ForkPoint] of a run; "" = at the run's end. Fork may be repeated.
func (c *Client) Fork(ctx context.Context, thread, run, at, to string) (Document[Fork], error) {
	r, err := post(runPath(thread, run)+"/fork", struct {
		ThreadID string `json:"threadId"`
		At       string `json:"at,omitempty"`
	}{to, at})
	if err != nil {
		return Document[Fork]{}, err
	}
	return document[Fork](ctx, c, r)
}

// DeleteThread cancels the active run of a thread, and deletes the thread with all of its content.
func (c *Client) DeleteThread(ctx context.Context, thread string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: threadPath(thread)})
	return err
}

// Shares are the owner of a thread, and with whom the thread is shared.
type Shares struct {
	Owner  string  `json:"owner,omitempty"` // "" = an anonymous caller
	Shares []Share `json:"shares"`
}

// Share gives access to a thread to the callers with a subject, with a role, or to everyone of the
// tenant. Exactly one of Subject, Role and Everyone is set.
type Share struct {
	Subject  string `json:"subject,omitempty"`
	Role     string `json:"role,omitempty"`
	Everyone bool   `json:"everyone,omitempty"`
	Access   string `json:"access"` // read, run, decide or manage
}

// Shares returns the owner of a thread, and with whom the thread is shared.
func (c *Client) Shares(ctx context.Context, thread string) (Document[Shares], error) {
	return document[Shares](ctx, c, get(threadPath(thread)+"/shares", nil))
}

// Share replaces the shares of a thread. Without shares the thread is private.
func (c *Client) Share(ctx context.Context, thread string, shares ...Share) (Document[Shares], error) {
	if shares == nil {
		shares = []Share{}
	}
	r, err := post(threadPath(thread)+"/shares", map[string]any{"shares": shares})
	if err != nil {
		return Document[Shares]{}, err
	}
	r.method = http.MethodPut
	return document[Shares](ctx, c, r)
}

// SetTitle gives a thread a title of at most 80 characters on one line. "" restores the one
// that a model has written, or else that of the first message.
func (c *Client) SetTitle(ctx context.Context, thread, title string) (Document[Thread], error) {
	return c.describe(ctx, threadPath(thread)+"/title", map[string]any{"title": title})
}

// SetMetadata replaces the metadata of a thread.
func (c *Client) SetMetadata(ctx context.Context, thread string, metadata map[string]string) (Document[Thread], error) {
	if metadata == nil {
		metadata = map[string]string{}
	}
	return c.describe(ctx, threadPath(thread)+"/metadata", map[string]any{"metadata": metadata})
}

// describe changes the description of a thread. The result has the ID, the title and the metadata
// only.
func (c *Client) describe(ctx context.Context, path string, body any) (Document[Thread], error) {
	r, err := post(path, body)
	if err != nil {
		return Document[Thread]{}, err
	}
	r.method = http.MethodPut
	return document[Thread](ctx, c, r)
}
