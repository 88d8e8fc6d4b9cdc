package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// Approval is a tool call that waits, or has waited, for people.
type Approval struct {
	ID         string `json:"id"`
	ThreadID   string `json:"threadId"`
	RunID      string `json:"runId"`
	Agent      string `json:"agent"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	// Args are the call's arguments; ArgsTruncated tells that they are too long to be here.
	Args          json.RawMessage `json:"args"`
	ArgsTruncated bool            `json:"argsTruncated"`
	ArgsDigest    string          `json:"argsDigest"`
	Message       string          `json:"message"`
	RequestedAt   time.Time       `json:"requestedAt"`
	// ExpiresAt is zero where there is time for ever.
	ExpiresAt time.Time `json:"expiresAt"`
	// Approvers are subjects, and role:name; none = whoever may use the thread.
	Approvers []string `json:"approvers"`
	// Quorum is how many different people have to approve.
	Quorum int `json:"quorum"`
	// Decisions are those that count so far.
	Decisions []Vote `json:"decisions"`
	// Reason is tool_call, or what a tool itself asks for, such as input_required: then ResponseSchema is the JSON Schema of
	// the answer.
	Reason         string          `json:"reason"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
}

// Vote is what one person, or time, has decided.
type Vote struct {
	Decision string    `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

// ApprovalFilter picks approvals. Empty members pick all.
type ApprovalFilter struct {
	Agent, Tool, Thread string
	// OlderThan is how long they have waited at least, such as 4h. The feed does not know it.
	OlderThan string
	// Assignee is who may decide: me, a subject, or role:name.
	Assignee string
}

// ApprovalPage is a page of what waits.
type ApprovalPage struct {
	Page[Approval]
	// EventsCursor is where the feed goes on from the page.
	EventsCursor string `json:"eventsCursor"`
}

// Approvals lists what waits for people over all threads, the oldest first.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter, p Paging) (Document[ApprovalPage], error) {
	q := p.query("agent", f.Agent, "tool", f.Tool, "thread", f.Thread, "olderThan", f.OlderThan, "assignee", f.Assignee)
	return document[ApprovalPage](ctx, c, get("/v1/approvals", q))
}

// ApprovalEvent is something that has happened to an approval.
type ApprovalEvent struct {
	// Cursor is where the feed goes on behind it.
	Cursor string `json:"-"`
	// Type is opened, voted, reminded, escalated, decided or expired.
	Type     string    `json:"type"`
	At       time.Time `json:"at"`
	Approval Approval  `json:"approval"`
	// JSON is the event as it came.
	JSON json.RawMessage `json:"-"`
}

// WatchApprovals tells what happens to approvals, behind a cursor or from now on. It does not end by itself.
func (c *Client) WatchApprovals(ctx context.Context, f ApprovalFilter, after string) iter.Seq2[ApprovalEvent, error] {
	r := &reader[ApprovalEvent]{client: c, after: after}
	r.decode = func(f frame) (e ApprovalEvent, err error) {
		err = json.Unmarshal(f.data, &e)
		e.Cursor, e.JSON = f.id, f.data
		return e, err
	}
	r.request = func(string) request {
		return get("/v1/approvals/events", Paging{}.query("agent", f.Agent, "tool", f.Tool, "thread", f.Thread, "assignee", f.Assignee))
	}
	return r.events(ctx)
}

// What can be decided.
const (
	Approve = "approve"
	Edit    = "edit"
	Reject  = "reject"
	Answer  = "answer"
)

// Decision is what somebody decides about an approval.
type Decision struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	Decision string `json:"decision"`
	// Args are all arguments of the call, with Edit.
	Args json.RawMessage `json:"args,omitempty"`
	// Content is what Answer says: a text that stands in for the tool's result, or what a tool has asked for, any value
	// that its ResponseSchema describes.
	Content any    `json:"content,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Remember makes it hold for the tool on this thread, with Approve.
	Remember bool `json:"remember,omitempty"`
}

// Decided is what became of a decision.
type Decided struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	// Status is 200 if the decision stands, else Code and Detail say why not.
	Status   int             `json:"status"`
	Decision string          `json:"decision,omitempty"`
	Repeated bool            `json:"repeated,omitempty"`
	Missing  int             `json:"missing,omitempty"` // how many more people have to approve
	Code     string          `json:"code,omitempty"`
	Detail   string          `json:"detail,omitempty"`
	Pointer  string          `json:"pointer,omitempty"` // of the member that is at fault, in all decisions
	Recorded json.RawMessage `json:"recorded,omitempty"`
}

// Err is the refusal of a decision; nil = it was taken.
func (d Decided) Err() error {
	if d.Status < 300 {
		return nil
	}
	return &Problem{Status: d.Status, Title: http.StatusText(d.Status), Code: d.Code, Detail: d.Detail, Pointer: d.Pointer, Recorded: d.Recorded}
}

// MaxDecisions is how many decisions there may be in a batch.
const MaxDecisions = 100

// Decide makes decisions, each for itself: there is a result for each, in their order.
func (c *Client) Decide(ctx context.Context, decisions ...Decision) (results []Decided, err error) {
	r, err := post("/v1/approvals/batch", map[string]any{"decisions": decisions})
	if err != nil {
		return nil, err
	}
	answer, err := document[struct{ Results []Decided }](ctx, c, r)
	return answer.Value.Results, err
}
