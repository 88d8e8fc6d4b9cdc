package decisions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The API checks who may decide, before anything is written. The workflow knows no roles, and
// counts the votes that the API lets through.

// voter identifies a voter for the workflow. All anonymous callers are one voter.
func voter(p auth.Principal) string {
	if p.Subject == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Tenant + "\x00" + p.Subject))
	return hex.EncodeToString(sum[:8])
}

// interruptRule is the rule of an interrupt, in the revision that asked.
type interruptRule struct {
	*stream.ApprovalSource
	definition *agents.Definition
	rule       agents.Approval
}

// askedBy finds the rule of an interrupt; nil = no rule asks.
func (s *Service) askedBy(ctx context.Context, t stream.Thread, question *agui.Interrupt) (*interruptRule, error) {
	asked, err := stream.ApprovalSourceOf(*question)
	if asked == nil || err != nil {
		return nil, err
	}
	d, err := s.catalog.Revision(ctx, asked.Agent, asked.Revision)
	if err == nil && asked.Step != "" {
		d, err = s.stepRules(ctx, t, d, asked)
	}
	if err != nil {
		return nil, err
	}
	if asked.Rule < 0 || asked.Rule >= len(d.Approvals) {
		return nil, fmt.Errorf("api: question %s: agent %s has no rule %d", question.ID, asked.Agent, asked.Rule)
	}
	return &interruptRule{asked, d, d.Approvals[asked.Rule]}, nil
}

// stepRules returns the agent with the rules of a step. The log has the steps of a program.
func (s *Service) stepRules(ctx context.Context, t stream.Thread, d *agents.Definition, asked *stream.ApprovalSource) (*agents.Definition, error) {
	if asked.Tree == 0 {
		return pipeline.Rules(d, asked.Step)
	}
	var kept struct {
		Tree json.RawMessage `json:"tree"`
	}
	if err := s.find.Log.Kept(ctx, t, asked.Tree, &kept); err != nil {
		return nil, err
	}
	d, err := pipeline.WithTree(d, kept.Tree)
	if err != nil {
		return nil, err
	}
	return pipeline.Rules(d, asked.Step)
}

// mayDecide refuses a caller that may not decide about an interrupt, an answer that does not fit
// it, and an edit that the caller may not make. at is the pointer to the answer in the request.
func (s *Service) mayDecide(ctx context.Context, t stream.Thread, thread *snapshot.Snapshot, question *agui.Interrupt, v Request, at string) error {
	if err := s.suits(question, v, at); err != nil {
		return err
	}
	a, err := s.askedBy(ctx, t, question)
	if a == nil || err != nil {
		return err
	}
	if a.Step == pipeline.LimitPath {
		if err := v.suitsLimit(at); err != nil {
			return err
		}
	}
	who := request.Caller(ctx)
	if !agents.MayDecide(a.rule.ApproversAfter(time.Since(a.AskedAt)), who.Subject, who.Roles) {
		return forbidden("not_an_approver", "this is others' to decide", at)
	}
	// An edit after the thread has continued executes nothing, and its call may be cut from the
	// conversation.
	edits := v.Decision == string(runs.DecisionEdit) && questionOf(thread.Interrupts, question.ID) != nil
	if !a.rule.NotByRequester && !edits {
		return nil
	}
	input, err := s.find.Log.Input(ctx, thread.Input)
	if err != nil {
		return err
	}
	if a.rule.NotByRequester && isRequester(input, who) {
		return forbidden("not_by_requester", "who asked for the run may not decide about its calls", at)
	}
	if !edits {
		return nil
	}
	tool := toolOf(thread, question.ToolCallID)
	if tool == "" { // without a tool the rules for the call are unknown
		return fmt.Errorf("api: question %s: its call is not in the conversation", question.ID)
	}
	if err := s.checkArguments(ctx, tool, v.Args, at); err != nil {
		return err
	}
	return a.covers(thread, tool, input, v.Args, at)
}

// checkArguments refuses arguments that the tool would refuse. If no worker has announced the
// tool's schema, the worker that makes the call checks them.
func (s *Service) checkArguments(ctx context.Context, tool string, args json.RawMessage, at string) error {
	if s.schemas == nil {
		return nil
	}
	pointer, reason, err := s.schemas.Check(ctx, tool, args)
	if err != nil || reason == "" {
		return err
	}
	return InvalidAnswer(editPointer(at)+pointer, reason)
}

// isRequester reports whether a caller may be the requester of a run. Two anonymous callers may be
// the same.
func isRequester(input *stream.Input, who auth.Principal) bool {
	requester := auth.Principal{Tenant: auth.TenantDefault}
	if input.Requester != nil {
		requester = *input.Requester
	}
	return requester.Tenant == who.Tenant && requester.Subject == who.Subject
}

// covers refuses arguments for which another rule asks other approvers: an edit may leave the rule
// that asks, but not evade another one.
func (a *interruptRule) covers(thread *snapshot.Snapshot, tool string, input *stream.Input, args json.RawMessage, at string) error {
	said, err := json.Marshal(input.Input)
	if err != nil {
		return fmt.Errorf("api: encode input: %w", err)
	}
	rule := a.definition.Asks(agents.ProposedCall{
		Agent: a.definition.Name, Tool: tool, Args: args, State: thread.State, Input: said,
		Caller: (*agents.Caller)(input.Requester),
	})
	if rule < 0 || rule == a.Rule || a.definition.Approvals[rule].AsManyDecideAs(a.rule) {
		return nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "other_approval", "with these arguments the call is under another rule, by which others decide: reject it instead")
	p.Pointer = editPointer(at)
	return p
}

// toolOf returns the name of a call's tool.
func toolOf(thread *snapshot.Snapshot, callID string) string { return findCall(thread, callID).Name }

// findCall returns a call of a thread; nil = unknown.
func findCall(thread *snapshot.Snapshot, callID string) agui.ToolCall {
	for i := len(thread.Entries) - 1; i >= 0; i-- {
		for _, c := range thread.Entries[i].Message.ToolCalls {
			if c.ID == callID {
				return c
			}
		}
	}
	return agui.ToolCall{}
}

func forbidden(code, detail, pointer string) *problem.Problem {
	p := problem.New(http.StatusForbidden, code, detail)
	p.Pointer = pointer
	return p
}
