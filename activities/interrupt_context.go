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
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file describes an interrupt for approvers: it collects from the log what the inbox, the
// audit and webhooks show of it. notification.go publishes the description.

// interruptContext has what the log knows about the interrupts of a notification. One Notify uses
// it, for all interrupts, and then drops it.
type interruptContext struct {
	activities   *Activities
	notification runs.Notification
	// thread is the snapshot at the record that announced the interrupts. requester is the subject
	// that asked for the run; "" = an anonymous caller.
	thread    *snapshot.Snapshot
	requester string
}

// loadInterruptContext reads the context of a notification as of the record that announced the
// interrupts: later inputs may edit the conversation, and do not count.
func (a *Activities) loadInterruptContext(ctx context.Context, in runs.Notification) (*interruptContext, error) {
	snap, err := a.Snapshots.At(ctx, runOf(in.Run).Thread, in.After)
	if err != nil {
		return nil, err
	}
	ic := &interruptContext{activities: a, notification: in, thread: snap}
	if snap.Input > 0 {
		input, err := a.Log.Input(ctx, snap.Input)
		if err != nil {
			return nil, err
		}
		if input.Requester != nil {
			ic.requester = input.Requester.Subject
		}
	}
	return ic, nil
}

// approval returns what approvers are shown of an interrupt: the question or rule, the call with
// its arguments, and the votes and decisions. c is its state at the time of the event.
func (ic *interruptContext) approval(ctx context.Context, c runs.Interrupt) (*inbox.Approval, error) {
	in := ic.notification
	a := &inbox.Approval{
		ID: interruptID(runOf(in.Run), c.Name()), ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID), Agent: in.Agent,
		ToolCallID: c.ID, RequestedAt: c.Since(in.OpenedAt).UTC(),
		Voting: inbox.Voting{Approvers: []string{}, Quorum: 1, Requester: ic.requester, Escalations: c.Escalations},
	}
	if !c.Expires.IsZero() {
		expires := c.Expires.UTC()
		a.ExpiresAt = &expires
	}
	if escalates := c.EscalatesAt(in.OpenedAt); !escalates.IsZero() {
		at := escalates.UTC()
		a.EscalatesAt = &at
	}
	var err error
	switch {
	case c.Question != nil && c.Question.Remote:
		err = ic.addRemoteQuestion(ctx, c, a)
	case c.Question != nil:
		err = ic.addQuestion(ctx, c, a)
	default:
		err = ic.addRule(ctx, c, a)
	}
	if err != nil {
		return nil, err
	}
	if c.Question == nil || !c.Question.Remote {
		a.ToolName, a.Args, a.ArgsTruncated = ic.findCall(c)
	}
	// Tallies are the votes for the same arguments; votes for different edits do not add up.
	for _, t := range c.Tallies() {
		a.Tallies = append(a.Tallies, inbox.Tally{ArgsDigest: t.ArgsDigest, Decision: string(t.Kind), Votes: t.Votes, Missing: t.Missing})
	}
	a.Decisions, err = ic.decisions(ctx, c)
	return a, err
}

// subjectsOf returns the subjects of some authors, each once, without anonymous callers.
func subjectsOf(authors []*auth.Principal) (subjects []string) {
	for _, p := range authors {
		if p != nil && p.Subject != "" && !slices.Contains(subjects, p.Subject) {
			subjects = append(subjects, p.Subject)
		}
	}
	return subjects
}

// addQuestion adds the question of a tool. The agent is the one whose tool asks, which may be a
// subagent.
func (ic *interruptContext) addQuestion(ctx context.Context, c runs.Interrupt, a *inbox.Approval) error {
	question, err := ic.activities.Log.ToolQuestion(ctx, c.Question.Seq)
	if err != nil {
		return err
	}
	a.Reason, a.Message, a.ResponseSchema, a.ArgsDigest = question.Reason, question.Message, question.ResponseSchema, question.Args
	_, err = ic.addAsker(a)
	return err
}

// addAsker adds the agent that asks a question, and who has contributed to what it knows. It returns the
// source of the question: that in the announced interrupt, or else that of the run's agent.
func (ic *interruptContext) addAsker(a *inbox.Approval) (source stream.QuestionSource, err error) {
	a.Contributors = subjectsOf(ic.thread.Authors())
	source.Agent, source.Revision = ic.notification.Agent, ic.notification.Revision
	// The announced interrupt knows the agent that asks.
	if i := slices.IndexFunc(ic.thread.Interrupts, func(q agui.Interrupt) bool { return q.ID == a.ID }); i >= 0 {
		if source, err = stream.QuestionSourceOf(ic.thread.Interrupts[i]); err != nil {
			return source, err
		}
		a.Agent = source.Agent
	}
	return source, nil
}

// addRule adds the approval rule and the message of an interrupt about making a call. The source in
// the interrupt's metadata names the rule. A subagent has rules of its own, so without a source
// those of the run's agent apply.
func (ic *interruptContext) addRule(ctx context.Context, c runs.Interrupt, a *inbox.Approval) error {
	a.Reason, a.ArgsDigest, a.Quorum = "tool_call", c.Approval.ArgsDigest, cmp.Or(c.Approval.Quorum, 1)
	source := &stream.ApprovalSource{Agent: ic.notification.Agent, Revision: ic.notification.Revision, Step: ic.notification.Step, Tree: ic.notification.Tree, Rule: c.Approval.Rule}
	if i := slices.IndexFunc(ic.thread.Interrupts, func(q agui.Interrupt) bool { return q.ID == a.ID }); i >= 0 {
		interrupt := ic.thread.Interrupts[i]
		a.Message = interrupt.Message
		announced, err := stream.ApprovalSourceOf(interrupt)
		if err != nil {
			return err
		}
		if announced != nil {
			source = announced
		}
	}
	// The path of a limit is no step that approvers know; the message names the limit.
	if a.Agent, a.Step = source.Agent, source.Step; a.Step == pipeline.LimitPath {
		a.Step = ""
	}
	return ic.addApprovers(ctx, *source, c, a)
}

// addApprovers adds who decides about an interrupt, by the rule that its source names.
func (ic *interruptContext) addApprovers(ctx context.Context, source stream.ApprovalSource, c runs.Interrupt, a *inbox.Approval) error {
	definition, err := ic.activities.interruptDefinition(ctx, runOf(ic.notification.Run).Thread, source)
	if err != nil {
		return err
	}
	seen, err := ic.thread.ForRules(ctx, ic.activities.Agents, ic.notification.Run.Tenant, stream.AgentRevision{Agent: source.Agent, Revision: source.Revision})
	if err != nil {
		return err
	}
	a.Contributors = subjectsOf(seen.Authors())
	// Escalations add approvers.
	if source.Rule < len(definition.Approvals) {
		rule := definition.Approvals[source.Rule]
		a.NotByRequester = rule.NotByRequester
		a.Approvers = append(a.Approvers, rule.ApproversAt(c.Escalations)...)
	}
	return nil
}

// findCall returns the tool and the arguments of the call from the conversation. truncated tells
// that the arguments are not shown: they are too large, or an edit has cut the message, of which
// only the tool is known.
func (ic *interruptContext) findCall(c runs.Interrupt) (tool string, args json.RawMessage, truncated bool) {
	call, ok := ic.thread.FindCall(c.ID)
	if !ok {
		return c.Tool, nil, true
	}
	args, truncated = inboxArgs(call.Arguments)
	return call.Name, args, truncated
}

// inboxArgs returns arguments as the inbox shows them; nil and true if they exceed inbox.MaxArgs.
// Arguments that are not valid JSON become a JSON string: a model may write anything.
func inboxArgs(arguments string) (args json.RawMessage, truncated bool) {
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
// content, the approver and the time come from the log, where the API has written them as
// proposals.
func (ic *interruptContext) decisions(ctx context.Context, c runs.Interrupt) ([]inbox.Decision, error) {
	all := slices.Clone(c.Votes)
	if c.Decision != nil && inbox.EventType(ic.notification.Event).Settles() {
		// The vote that completed the quorum is the decision.
		all = slices.DeleteFunc(all, func(d runs.Decision) bool { return d.Digest == c.Decision.Digest })
		all = append(all, *c.Decision)
	}
	decisions := []inbox.Decision{}
	for _, d := range all {
		// Without a proposal, such as for a decision by time, the time is that of the event.
		decision := inbox.Decision{Decision: string(d.Kind), At: ic.notification.At.UTC(), Digest: d.Digest, ArgsDigest: d.ArgsDigest}
		if c.Approval != nil {
			decision.ArgsDigest = cmp.Or(d.ArgsDigest, c.Approval.ArgsDigest)
		}
		if d.Proposal > 0 {
			content, writtenAt, err := ic.activities.Log.DecisionAt(ctx, d.Proposal)
			if err != nil {
				return nil, err
			}
			decision.At, decision.Channel, decision.Reason, decision.Remember = writtenAt.UTC(), content.Channel, content.Reason, content.Remember
			decision.Issuer = content.Issuer
			if content.By != nil {
				decision.By = content.By.Subject
			}
			if err := addDecisionContent(&decision, content); err != nil {
				return nil, err
			}
		} else if d.Kind == runs.DecisionCancel {
			// A cancel has no proposal: its request is a record of the run.
			if err := ic.addCancel(ctx, &decision); err != nil {
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

// addCancel adds the caller that cancelled the run, the time and the reason, if the log has a
// request to cancel.
func (ic *interruptContext) addCancel(ctx context.Context, d *inbox.Decision) error {
	c, err := ic.activities.Log.CancelOf(ctx, runOf(ic.notification.Run))
	if c == nil || err != nil {
		return err
	}
	d.At, d.Reason = c.At.UTC(), c.Reason
	if c.By != nil {
		d.By = c.By.Subject
	}
	return nil
}
