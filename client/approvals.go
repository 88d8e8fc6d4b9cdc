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
	// Step is the path of the step of a pipeline that asks; empty outside of pipelines.
	Step string `json:"step"`
	// Quorum is how many different people have to vote for the same arguments.
	Quorum int `json:"quorum"`
	// Decisions are those that count so far.
	Decisions []Vote `json:"decisions"`
	// Proposals counts the votes while the approval waits for a quorum: first those for Args, then those for an edit.
	Proposals []Proposal `json:"proposals"`
	// Reason is tool_call, or what a tool itself asks for, such as input_required: then ResponseSchema is the JSON Schema of
	// the answer.
	Reason         string          `json:"reason"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// Status is decided or expired in a list of what is decided, open in a thread's audit; else empty.
	Status string `json:"status"`
}

// Vote is what one person, or time, has decided.
type Vote struct {
	Decision string    `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	// Channel is how it came: input, http, websocket, batch, link or cli.
	Channel    string `json:"channel"`
	Reason     string `json:"reason"`
	ArgsDigest string `json:"argsDigest"`
	// Args are those of an edit, Content is an answer; Truncated tells that they are too long to be here.
	Args      json.RawMessage `json:"args,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	// Remember is the scope of an approval that covers further calls.
	Remember string `json:"remember,omitempty"`
}

// Proposal is a set of arguments that approvers vote for.
type Proposal struct {
	ArgsDigest string `json:"argsDigest"`
	// Decision is Approve for the model's arguments, Edit for others.
	Decision string `json:"decision"`
	Votes    int    `json:"votes"`
	Missing  int    `json:"missing"` // votes that complete the quorum
}

// ApprovalFilter picks approvals. Empty members pick all.
type ApprovalFilter struct {
	Agent, Tool, Thread string
	// OlderThan is how long they have waited at least, such as 4h. The feed does not know it.
	OlderThan string
	// Assignee is who may decide: me, a subject, or role:name.
	Assignee string
	// Status is open, like empty, or decided: what was decided in the last 30 days, the last first. Of what is decided,
	// neither OlderThan nor Assignee picks. The feed does not know it.
	Status string
}

// ApprovalPage is a page of what waits.
type ApprovalPage struct {
	Page[Approval]
	// EventsCursor is where the feed goes on from the page.
	EventsCursor string `json:"eventsCursor"`
}

// Approvals lists what waits for people over all threads, the oldest first, or what is decided.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter, p Paging) (Document[ApprovalPage], error) {
	q := p.query("agent", f.Agent, "tool", f.Tool, "thread", f.Thread, "olderThan", f.OlderThan, "assignee", f.Assignee, "status", f.Status)
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

// Which further calls of the tool on the thread an approval covers, as long as the rule that asked stays the same.
const (
	RememberArguments = "arguments" // those with equal arguments
	RememberTool      = "tool"      // all
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
	// Remember is RememberArguments or RememberTool, with Approve; empty = the approval covers this call only.
	Remember string `json:"remember,omitempty"`
}

// Decided is what became of a decision.
type Decided struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	// Status is 200 if the decision stands, else Code and Detail say why not.
	Status   int    `json:"status"`
	Decision string `json:"decision,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Missing  int    `json:"missing,omitempty"` // how many more people have to vote for the same arguments
	// Proposals counts the votes for each proposal, after a vote that does not complete the quorum.
	Proposals []Proposal `json:"proposals,omitempty"`
	// Cursor is what a reader of the thread waits for that is to see what came of the decision: see Following.WaitFor.
	// The client that has decided does so by itself.
	Cursor  string `json:"cursor,omitempty"`
	Code    string `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Pointer string `json:"pointer,omitempty"` // of the member that is at fault, in all decisions
	// Recorded is the decision that stands: {id, decision, by?, at?, args?, truncated?, reason?}. Arguments of more than 8 KiB are
	// left out, which truncated tells.
	Recorded json.RawMessage `json:"recorded,omitempty"`
}

// Err returns the refusal of a decision; nil = it was taken.
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
	for _, d := range answer.Value.Results {
		c.acknowledged.note(d.ThreadID, d.Cursor)
	}
	return answer.Value.Results, err
}
