package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// Approval is an approval, a question of a tool, or a soft limit that an approver decides.
type Approval struct {
	ID         string `json:"id"`
	ThreadID   string `json:"threadId"`
	RunID      string `json:"runId"`
	Agent      string `json:"agent"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	// Args are the arguments of the call. ArgsTruncated reports that they are too large to be
	// included.
	Args          json.RawMessage `json:"args"`
	ArgsTruncated bool            `json:"argsTruncated"`
	ArgsDigest    string          `json:"argsDigest"`
	Message       string          `json:"message"`
	RequestedAt   time.Time       `json:"requestedAt"`
	// ExpiresAt is zero if the time is unlimited.
	ExpiresAt time.Time `json:"expiresAt"`
	// EscalatesAt is when the next escalation step adds approvers; zero if none is left.
	EscalatesAt time.Time `json:"escalatesAt"`
	// Step is the path of the pipeline step that waits; "" = no step.
	Step string `json:"step"`
	Voting
	// Reason is tool_call for an approval. For a question it is the reason of the tool, such as
	// input_required, and ResponseSchema is the JSON Schema of the answer.
	Reason         string          `json:"reason"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// Status is decided or expired in a list of decided approvals, and also open in a thread's
	// audit; otherwise empty.
	Status string `json:"status"`
}

// Voting is who may decide an approval, and who has decided.
type Voting struct {
	// Approvers are subjects, and role:name; none = those that may decide in the thread.
	Approvers []string `json:"approvers"`
	// Quorum is the number of different approvers who must vote for the same arguments.
	Quorum int `json:"quorum"`
	// Decisions are the valid votes of an open approval, and the decision of a decided one.
	Decisions []RecordedDecision `json:"decisions"`
	// Tallies are the votes of an open approval with a quorum: first those for Args, then those
	// for edits.
	Tallies []Tally `json:"tallies"`
}

// RecordedDecision is a vote or a decision of an approver, or an expiry.
type RecordedDecision struct {
	Decision string    `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	// Channel is how it reached the API: input, http, websocket, batch, link or cli; or event if an
	// event has ended a wait.
	Channel string `json:"channel"`
	// Issuer is the subject that created the link by which the decision was made.
	Issuer     string `json:"issuer"`
	Reason     string `json:"reason"`
	ArgsDigest string `json:"argsDigest"`
	// Args are the arguments of an edit, Content is an answer; Truncated tells that they are too
	// large to be included.
	Args      json.RawMessage `json:"args,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	// Remember is the scope of an approval that covers further calls.
	Remember string `json:"remember,omitempty"`
}

// Tally is a set of arguments, or an answer to a question, that approvers vote for.
type Tally struct {
	ArgsDigest string `json:"argsDigest"`
	// Decision is Approve for the arguments of the call, Edit for others, Answer for an answer.
	Decision string `json:"decision"`
	Votes    int    `json:"votes"`
	Missing  int    `json:"missing"` // votes that complete the quorum
}

// ApprovalFilter selects approvals. Empty members select all.
type ApprovalFilter struct {
	Agent, Tool, Thread string
	// OlderThan selects approvals that have been open for at least this duration, such as 4h. It
	// does not apply to WatchApprovals.
	OlderThan string
	// Assignee selects approvals that this approver may decide: me, a subject, or role:name.
	Assignee string
	// Status is open, which is the default, or decided: those of the last 30 days, latest first.
	// With decided, OlderThan and Assignee are not allowed. It does not apply to WatchApprovals.
	Status string
}

// ApprovalPage is a page of approvals.
type ApprovalPage struct {
	Page[Approval]
	// EventsCursor is the cursor with which WatchApprovals continues after the page.
	EventsCursor string `json:"eventsCursor"`
}

// Approvals returns a page of the approvals of all threads: the open ones, oldest first, or the
// decided ones, last decided first. The page shows the decisions that this client has made.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter, p Paging) (Document[ApprovalPage], error) {
	q := p.query("agent", f.Agent, "tool", f.Tool, "thread", f.Thread, "olderThan", f.OlderThan, "assignee", f.Assignee, "status", f.Status)
	return document[ApprovalPage](ctx, c, get("/v1/approvals", c.acknowledged.addTo(q, f.Thread)))
}

// ApprovalEvent is a change of an approval.
type ApprovalEvent struct {
	// Cursor is the cursor after the event.
	Cursor string `json:"-"`
	// Type is opened, voted, reminded, escalated, decided or expired.
	Type     string    `json:"type"`
	At       time.Time `json:"at"`
	Approval Approval  `json:"approval"`
	// JSON is the event as received.
	JSON json.RawMessage `json:"-"`
}

// WatchApprovals returns the changes of approvals after a cursor; "" = from now on. It reconnects
// like all streams, and ends only with an error or with ctx.
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

// Values of Decision.Decision.
const (
	Approve = "approve"
	Edit    = "edit"
	Reject  = "reject"
	Answer  = "answer"
)

// Values of Decision.Remember: the further calls of the tool in the thread that the approval
// covers, until the rule changes.
const (
	RememberArguments = "arguments" // calls with equal arguments
	RememberTool      = "tool"      // all calls
)

// Decision is a decision about an approval.
type Decision struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	Decision string `json:"decision"`
	// Args are all arguments of the call, with Edit.
	Args json.RawMessage `json:"args,omitempty"`
	// Content is the answer, with Answer: the result of the call as text, or a value that matches
	// the ResponseSchema of a question.
	Content any    `json:"content,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Remember is RememberArguments or RememberTool, with Approve; empty = the approval covers this
	// call only.
	Remember string `json:"remember,omitempty"`
}

// DecisionResult is the result of a decision.
type DecisionResult struct {
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
	// Status is 200 if the decision was recorded; otherwise Code and Detail have the reason.
	Status   int    `json:"status"`
	Decision string `json:"decision,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
	Missing  int    `json:"missing,omitempty"` // how many more approvers must vote for the same arguments
	// Tallies are the votes so far, if the quorum is not complete.
	Tallies []Tally `json:"tallies,omitempty"`
	// Cursor is the value of FollowOptions.WaitFor with which a reader of the thread sees the
	// effect of the decision. The client that made the decision sends it automatically.
	Cursor  string `json:"cursor,omitempty"`
	Code    string `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Pointer string `json:"pointer,omitempty"` // of the invalid member, from the beginning of the batch
	// Recorded is the decision that was recorded before: {id, decision, by?, at?, args?,
	// truncated?, reason?}. Arguments of more than 8 KiB are omitted, and truncated is true.
	Recorded json.RawMessage `json:"recorded,omitempty"`
}

// Err returns the error of a refused decision as a *Problem; nil = it was recorded.
func (d DecisionResult) Err() error {
	if d.Status < 300 {
		return nil
	}
	return &Problem{Status: d.Status, Title: http.StatusText(d.Status), Code: d.Code, Detail: d.Detail, Pointer: d.Pointer, Recorded: d.Recorded}
}

// MaxDecisions is the maximal number of decisions in one call of Decide.
const MaxDecisions = 100

// Decide sends decisions, and returns a result for each, in the same order. They are independent:
// one may be refused and the others recorded. The error is nil even if all are refused.
func (c *Client) Decide(ctx context.Context, decisions ...Decision) (results []DecisionResult, err error) {
	r, err := post("/v1/approvals/batch", map[string]any{"decisions": decisions})
	if err != nil {
		return nil, err
	}
	answer, err := document[struct{ Items []DecisionResult }](ctx, c, r)
	for _, d := range answer.Value.Items {
		c.acknowledged.note(d.ThreadID, d.Cursor)
	}
	return answer.Value.Items, err
}
