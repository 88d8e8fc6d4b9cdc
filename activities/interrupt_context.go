package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file describes an interrupt for people: it collects from the log what the inbox, the audit
// and webhooks show of it. notify.go publishes the description.

// recollection has what the log knows about the interrupts of a notification. One Notify uses it,
// for all interrupts, and then drops it.
type recollection struct {
	activities *Activities
	notice     runs.Notification
	// thread is the snapshot at the record that announced the interrupts. requester is the subject
	// that asked for the run; "" = an anonymous caller.
	thread    *snapshot.Snapshot
	requester string
}

// loadContext reads the context of a notification as of the record that announced the interrupts:
// later inputs may edit the conversation, and do not count.
func (a *Activities) loadContext(ctx context.Context, in runs.Notification) (*recollection, error) {
	thread, err := a.Snapshots.At(ctx, runOf(in.Run).Thread, in.After)
	if err != nil {
		return nil, err
	}
	r := &recollection{activities: a, notice: in, thread: thread}
	if thread.Input > 0 {
		input, err := a.Log.Input(ctx, thread.Input)
		if err != nil {
			return nil, err
		}
		if input.Requester != nil {
			r.requester = input.Requester.Subject
		}
	}
	return r, nil
}

// approval returns what people are shown of an interrupt: the question or rule, the call with its
// arguments, and the votes and decisions. c is its state at the time of the event.
func (r *recollection) approval(ctx context.Context, c runs.Interrupt) (*inbox.Approval, error) {
	in := r.notice
	a := &inbox.Approval{
		ID: questionID(runOf(in.Run), c.Name()), ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID), Agent: in.Agent,
		ToolCallID: c.ID, RequestedAt: c.Since(in.Opened).UTC(), Approvers: []string{},
		Quorum: 1, Requester: r.requester, Escalations: c.Escalations,
	}
	if !c.Expires.IsZero() {
		expires := c.Expires.UTC()
		a.ExpiresAt = &expires
	}
	var err error
	if c.Question != nil {
		err = r.raised(ctx, c, a)
	} else {
		err = r.rule(ctx, c, a)
	}
	if err != nil {
		return nil, err
	}
	a.ToolName, a.Args, a.ArgsTruncated = r.findCall(c)
	// Tallies are the votes for the same arguments; votes for different edits do not add up.
	for _, t := range c.Tallies() {
		a.Proposals = append(a.Proposals, proposal(t, a.ArgsDigest))
	}
	a.Decisions, err = r.decisions(ctx, c)
	return a, err
}

// proposal returns the votes for one set of arguments. original is the digest of the model's
// arguments: votes for others are for an edit.
func proposal(t runs.Tally, original string) inbox.Proposal {
	p := inbox.Proposal{ArgsDigest: t.Args, Decision: string(runs.DecisionEdit), Votes: t.Votes, Missing: t.Missing}
	if t.Args == original {
		p.Decision = string(runs.DecisionApprove)
	}
	return p
}

// raised adds the question of a tool. The agent is the one whose tool asks, which may be a
// subagent.
func (r *recollection) raised(ctx context.Context, c runs.Interrupt, a *inbox.Approval) error {
	q, err := r.activities.Log.ToolQuestion(ctx, c.Question.Seq)
	if err != nil {
		return err
	}
	a.Reason, a.Message, a.ResponseSchema, a.ArgsDigest = q.Reason, q.Message, q.ResponseSchema, q.Args
	// The announced interrupt knows the agent whose tool asks.
	if i := slices.IndexFunc(r.thread.Interrupts, func(asked agui.Interrupt) bool { return asked.ID == a.ID }); i >= 0 {
		by, err := stream.QuestionSourceOf(r.thread.Interrupts[i])
		if err != nil {
			return err
		}
		a.Agent = by.Agent
	}
	return nil
}

// rule adds the approval rule and the message of an interrupt about making a call. The source in
// the interrupt's metadata names the rule. A subagent has rules of its own, so without a source
// those of the run's agent apply.
func (r *recollection) rule(ctx context.Context, c runs.Interrupt, a *inbox.Approval) error {
	a.Reason, a.ArgsDigest, a.Quorum = "tool_call", c.Approval.Args, cmp.Or(c.Approval.Quorum, 1)
	by := &stream.ApprovalSource{Agent: r.notice.Agent, Revision: r.notice.Revision, Step: r.notice.Step, Tree: r.notice.Tree, Rule: c.Approval.Rule}
	if i := slices.IndexFunc(r.thread.Interrupts, func(q agui.Interrupt) bool { return q.ID == a.ID }); i >= 0 {
		question := r.thread.Interrupts[i]
		a.Message = question.Message
		source, err := stream.ApprovalSourceOf(question)
		if err != nil {
			return err
		}
		if source != nil {
			by = source
		}
	}
	definition, err := r.activities.interruptDefinition(ctx, runOf(r.notice.Run).Thread, *by)
	if err != nil {
		return err
	}
	// The path of a limit is no step that people know; the message names the limit.
	if a.Agent, a.Step = by.Agent, by.Step; a.Step == pipeline.LimitPath {
		a.Step = ""
	}
	// Escalations add approvers.
	if by.Rule < len(definition.Approvals) {
		rule := definition.Approvals[by.Rule]
		a.NotByRequester = rule.NotByRequester
		a.Approvers = append(a.Approvers, rule.ApproversAt(c.Escalations)...)
	}
	return nil
}

// findCall returns the tool and the arguments of the call from the conversation. truncated tells
// that the arguments are not shown: they are too large, or an edit has cut the message, of which
// only the tool is known.
func (r *recollection) findCall(c runs.Interrupt) (tool string, args json.RawMessage, truncated bool) {
	for i := len(r.thread.Entries) - 1; i >= 0; i-- {
		for _, call := range r.thread.Entries[i].Message.ToolCalls {
			if call.ID == c.ID {
				args, truncated = shownArgs(call.Arguments)
				return call.Name, args, truncated
			}
		}
	}
	return c.Tool, nil, true
}

// shownArgs returns arguments as the inbox shows them; nil and true if they exceed inbox.MaxArgs.
// Arguments that are not valid JSON become a JSON string: a model may write anything.
func shownArgs(arguments string) (args json.RawMessage, truncated bool) {
	args = json.RawMessage(arguments)
	if !json.Valid(args) {
		text, err := json.Marshal(arguments)
		if err != nil { // a string can always be encoded
			return nil, true
		}
		args = text
	}
	if len(args) > inbox.MaxArgs {
		return nil, true
	}
	return args, false
}

// decisions returns the votes and, for an event that settles the interrupt, the decision. Their
// content, the person and the time come from the log, where the API has written them as proposals.
func (r *recollection) decisions(ctx context.Context, c runs.Interrupt) ([]inbox.Decision, error) {
	all := slices.Clone(c.Votes)
	if c.Decision != nil && inbox.EventType(r.notice.Event).Settles() {
		// The vote that completed the quorum is the decision.
		all = slices.DeleteFunc(all, func(d runs.Decision) bool { return d.Digest == c.Decision.Digest })
		all = append(all, *c.Decision)
	}
	decisions := []inbox.Decision{}
	for _, d := range all {
		// Without a proposal, such as for a decision by time, the time is that of the event.
		decision := inbox.Decision{Decision: string(d.Kind), At: r.notice.At.UTC(), Digest: d.Digest, ArgsDigest: d.Args}
		if c.Approval != nil {
			decision.ArgsDigest = cmp.Or(d.Args, c.Approval.Args)
		}
		if d.Input > 0 {
			content, at, err := r.activities.Log.DecisionAt(ctx, d.Input)
			if err != nil {
				return nil, err
			}
			decision.At, decision.Channel, decision.Reason, decision.Remember = at.UTC(), content.Channel, content.Reason, content.Remember
			if content.By != nil {
				decision.By = content.By.Subject
			}
			if err := addDecisionContent(&decision, content); err != nil {
				return nil, err
			}
		} else if d.Kind == runs.DecisionCancel {
			// A cancel has no proposal: its request is a record of the run.
			if err := r.cancelled(ctx, &decision); err != nil {
				return nil, err
			}
		}
		decisions = append(decisions, decision)
	}
	return decisions, nil
}

// addDecisionContent adds the edited arguments or the answer; beyond inbox.MaxArgs it sets
// Truncated instead.
func addDecisionContent(d *inbox.Decision, content *stream.Decision) error {
	d.Args, d.Content = content.Args, content.Content
	if content.Result != nil && content.Result.Content.IsText() {
		text, err := json.Marshal(content.Result.Content.Text())
		if err != nil {
			return fmt.Errorf("activities: encode answer: %w", err)
		}
		d.Content = text
	}
	if len(d.Args) > inbox.MaxArgs || len(d.Content) > inbox.MaxArgs {
		d.Args, d.Content, d.Truncated = nil, nil, true
	}
	return nil
}

// cancelled adds the caller that cancelled the run, the time and the reason, if the log has a
// request to cancel.
func (r *recollection) cancelled(ctx context.Context, d *inbox.Decision) error {
	c, err := r.activities.Log.CancelOf(ctx, runOf(r.notice.Run))
	if c == nil || err != nil {
		return err
	}
	d.At, d.Reason = c.At.UTC(), c.Reason
	if c.By != nil {
		d.By = c.By.Subject
	}
	return nil
}
