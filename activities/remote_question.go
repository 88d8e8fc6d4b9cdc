package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// A remote agent may end its run with interrupts. Perdure asks people in its place, as it does for a
// question of a tool:
//
//	done record of the run: the interrupts ──► runs.Interrupt ──► AG-UI, inbox, webhooks
//	                                                                  │ decision
//	next run of the agent ◄── resume ◄── record of each decision ◄────┘
//
// The snapshot knows which interrupts the agent's next run has to answer, and the decisions about them
// (snapshot.Interruptions). So no workflow carries them.

// noteInterrupts adds the interrupts of a run to its answer, with the rule of the remote agent about who
// answers them, and returns them for the done record. A run with more than runs.MaxInterrupts fails. The answer
// has one more than that at most, because it goes to the history.
func noteInterrupts(endpoint *agents.Remote, relayed *relay.Relay, answer *runs.ModelAnswer) (asked []stream.RemoteInterrupt) {
	for i, interrupt := range relayed.Interrupts() {
		q := runs.AskedQuestion{CallID: relayed.OwnID(interrupt.Interrupt.ID), Number: i + 1, Expires: timeLeft(interrupt.Interrupt)}
		if endpoint.HasRule() {
			q.Approval = approvalOf(endpoint.Interrupts)
		}
		if len(answer.Questions) <= runs.MaxInterrupts {
			answer.Questions = append(answer.Questions, q)
		}
		kept := stream.RemoteInterrupt{CallID: q.CallID, Interrupt: interrupt.Interrupt, Event: interrupt.Event}
		kept.Interrupt.Message = interrupt.Question()
		if id := interrupt.Interrupt.ToolCallID; id != "" {
			kept.ToolCallID = relayed.OwnID(id)
		}
		asked = append(asked, kept)
	}
	answer.InterruptCount += len(answer.Questions)
	return asked
}

// minAnswerTime is how long people may answer at least, whatever the remote says.
const minAnswerTime = time.Second

// timeLeft returns how long people may answer an interrupt; 0 = for ever.
func timeLeft(i agui.Interrupt) time.Duration {
	expires, err := time.Parse(time.RFC3339, i.ExpiresAt)
	if err != nil { // there is none
		return 0
	}
	return max(time.Until(expires), minAnswerTime)
}

// remoteInterruptOf returns the interrupt that a question of a remote agent refers to.
func (a *Activities) remoteInterruptOf(ctx context.Context, q *runs.Question) (stream.RemoteInterrupt, error) {
	run, err := a.Log.RemoteRun(ctx, q.Seq)
	if err != nil {
		return stream.RemoteInterrupt{}, err
	}
	if q.Number < 1 || q.Number > len(run.Interrupts) {
		return stream.RemoteInterrupt{}, fmt.Errorf("activities: record %d has no interrupt %d", q.Seq, q.Number)
	}
	return run.Interrupts[q.Number-1], nil
}

// remoteInterrupt returns the AG-UI interrupt of a remote agent's question. The remote's metadata is
// kept, except for members that Perdure sets.
func (a *Activities) remoteInterrupt(ctx context.Context, s *runs.Interrupts, c runs.Interrupt) (agui.Interrupt, error) {
	asked, err := a.remoteInterruptOf(ctx, c.Question)
	if err != nil {
		return agui.Interrupt{}, err
	}
	source := s.Source(c)
	question := stream.QuestionSource{
		Agent: source.Agent, Revision: source.Revision, Number: c.Question.Number, OpenedAt: c.Since(s.OpenedAt), CallID: c.ID, RemoteID: asked.Interrupt.ID,
	}
	if c.Approval != nil {
		question.Quorum = max(1, c.Approval.Quorum)
	}
	encodedSource, err := json.Marshal(question)
	if err != nil {
		return agui.Interrupt{}, fmt.Errorf("activities: encode question: %w", err)
	}
	i := asked.Interrupt
	metadata := agui.Metadata{}
	for name, value := range i.Metadata {
		if !strings.HasPrefix(name, ownMetadata) {
			metadata[name] = value
		}
	}
	metadata[stream.MetadataQuestion] = encodedSource
	return agui.Interrupt{Reason: shownReason(i.Reason), Message: i.Message, ResponseSchema: i.ResponseSchema, ToolCallID: asked.ToolCallID, Metadata: metadata}, nil
}

// shownReason returns the reason of an interrupt of a remote agent as clients see it. The reason tool_call
// is that of Perdure's own approvals, which clients answer in another form.
func shownReason(reason string) string {
	if reason == reasonToolCall {
		return "remote:" + reasonToolCall
	}
	return reason
}

// ownMetadata is the prefix of the members of metadata that Perdure sets. The remote agent may be one of
// another Perdure, which sets them as well: those of this one replace them.
const ownMetadata = "perdure."

// addRemoteQuestion adds the question of a remote agent to what approvers are shown.
func (ic *interruptContext) addRemoteQuestion(ctx context.Context, c runs.Interrupt, a *inbox.Approval) error {
	asked, err := ic.activities.remoteInterruptOf(ctx, c.Question)
	if err != nil {
		return err
	}
	i := asked.Interrupt
	a.Reason, a.Message, a.ResponseSchema = shownReason(i.Reason), cmp.Or(i.Message, "The agent asks."), i.ResponseSchema
	if _, isShown := ic.thread.FindCall(asked.ToolCallID); isShown {
		a.ToolName, a.Args, a.ArgsTruncated = ic.findCall(runs.Interrupt{Call: runs.Call{ID: asked.ToolCallID}})
	}
	source, err := ic.addAsker(a)
	if err != nil || c.Approval == nil {
		return err
	}
	a.Quorum = cmp.Or(c.Approval.Quorum, 1)
	return ic.addApprovers(ctx, stream.ApprovalSource{Agent: source.Agent, Revision: source.Revision, Step: pipeline.RemotePath}, c, a)
}

// recordRemoteAnswer writes the decision about a question of a remote agent to the log, where the
// agent's next run finds it.
func recordRemoteAnswer(ctx context.Context, in runs.ToolCall, attempt *stream.Attempt, opened uint64) (runs.ToolAnswer, error) {
	answer := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: opened}
	return recordDecision(ctx, attempt, answer, &stream.Result{Decided: decisionRecord(in, "", "")})
}

// openInterruptsRecord returns the record with the interrupts that the next run in a remote thread answers; 0 =
// there are none. If the remote has refused the answers, it does not get them again: it may have lost
// the interrupts, and all later runs of the thread would fail.
func openInterruptsRecord(conversation *snapshot.Snapshot, thread string) uint64 {
	seq := conversation.RemoteInterrupts[thread]
	if seq > conversation.Opened { // asked in this run
		return seq
	}
	for _, run := range slices.Backward(conversation.Runs) {
		if run.Outcome == string(agui.OutcomeInterrupt) {
			break
		}
		if run.Code == codeRemoteRunFailed || run.Code == string(remote.KindRejected) {
			return 0
		}
	}
	return seq
}

// addDecisions adds the decisions about the interrupts with which the agent's last run has ended. An
// interrupt without a decision counts as cancelled: nobody is going to answer.
func (a *Activities) addDecisions(ctx context.Context, t turn, in *remoteInput) error {
	seq := openInterruptsRecord(t.conversation, in.request.ThreadID)
	if seq == 0 {
		return nil
	}
	last, err := a.Log.RemoteRun(ctx, seq)
	if err != nil {
		return err
	}
	var asked []remote.Interrupt
	var decisions []agui.ResumeEntry
	for _, i := range last.Interrupts {
		asked = append(asked, remote.Interrupt{Interrupt: i.Interrupt, Event: i.Event})
		d, err := a.resumeEntry(ctx, i, t.conversation)
		if err != nil {
			return err
		}
		decisions = append(decisions, d)
		if i.ToolCallID != "" { // Mastra's run has not told of the call, and the next one has its result
			in.known[i.Interrupt.ToolCallID] = i.ToolCallID
		}
		if _, isShown := t.conversation.FindCall(i.ToolCallID); isShown && i.Interrupt.Reason == reasonToolCall {
			in.answers = append(in.answers, relay.Answer{CallID: i.ToolCallID, Content: answerText(d)})
		}
	}
	resumed, err := remote.Resume(in.request, asked, decisions)
	if err != nil {
		return t.remoteFailure(&remote.Error{Kind: remote.KindInvalid, Message: err.Error(), Err: err})
	}
	in.request = resumed
	return nil
}

// reasonToolCall is the reason of interrupts about a tool call. The decision is the result of the call:
// the clients of CopilotKit's agents add a tool message with it.
const reasonToolCall = "tool_call"

// answerText returns a decision as the text of such a tool message.
func answerText(d agui.ResumeEntry) string {
	if d.Status == agui.ResumeResolved && len(d.Payload) > 0 {
		return string(d.Payload)
	}
	return `{"status":"` + string(d.Status) + `"}`
}

// resumeEntry returns the decision about an interrupt, as the remote receives it.
func (a *Activities) resumeEntry(ctx context.Context, asked stream.RemoteInterrupt, conversation *snapshot.Snapshot) (agui.ResumeEntry, error) {
	entry := agui.ResumeEntry{InterruptID: asked.Interrupt.ID, Status: agui.ResumeCancelled}
	at := slices.IndexFunc(conversation.Decided, func(d stream.Decided) bool { return d.CallID == asked.CallID })
	if at < 0 {
		return entry, nil
	}
	d := conversation.Decided[at]
	reply, err := a.replyContent(ctx, stream.Reply{Kind: d.Kind, Proposal: d.Proposal})
	if err != nil {
		return entry, err
	}
	switch reply.Status {
	case tools.Answered:
		entry.Status, entry.Payload = agui.ResumeResolved, reply.Content
	case tools.Declined:
		if payload := refusal(asked.Interrupt.ResponseSchema, reply.Words); payload != nil {
			entry.Status, entry.Payload = agui.ResumeResolved, payload
		}
	}
	return entry, nil
}

// refusal returns the answer that declines, if the schema of the answer has the member approved, as
// those of approvals do; nil = it has none.
func refusal(schema json.RawMessage, reason string) json.RawMessage {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil || object.Properties["approved"] == nil {
		return nil
	}
	answer := map[string]any{"approved": false}
	if object.Properties["reason"] != nil && reason != "" {
		answer["reason"] = reason
	}
	raw, err := json.Marshal(answer)
	if err != nil { // a string and a boolean can always be encoded
		return nil
	}
	return raw
}
