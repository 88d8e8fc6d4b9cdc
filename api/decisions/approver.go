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
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The API checks, before anything is written, whether the caller may decide. The workflow knows no
// roles, and counts the votes that the API accepts. The rule comes from the agent's revision that
// raised the interrupt, so a newer revision does not change who may decide.

// voterID returns a short digest of a principal, by which the workflow counts each approver of a
// quorum once. All anonymous callers are one voter, "": otherwise one person could complete a
// quorum.
func voterID(p auth.Principal) string {
	if p.Subject == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Tenant + "\x00" + p.Subject))
	return hex.EncodeToString(sum[:8])
}

// interruptRule is the approval rule that raised an interrupt, in the revision that the run had.
type interruptRule struct {
	*stream.ApprovalSource
	thread     stream.Thread
	definition *agents.Definition
	approval   agents.Approval
}

// ruleOf returns the rule that raised an interrupt, or that says who answers a question of a remote
// agent; nil = a question without a rule. It may read the revision, and the step tree of a program, from
// the store and the log.
func (s *Service) ruleOf(ctx context.Context, thread stream.Thread, interrupt *agui.Interrupt) (*interruptRule, error) {
	source, err := sourceOfRule(*interrupt)
	if source == nil || err != nil {
		return nil, err
	}
	definition, err := s.catalog.Revision(ctx, thread.Tenant, source.Agent, source.Revision)
	if err == nil && source.Step != "" {
		definition, err = s.stepRules(ctx, thread, definition, source)
	}
	if err != nil {
		return nil, err
	}
	// A defect: the revision cannot change after the interrupt was raised.
	if source.Rule < 0 || source.Rule >= len(definition.Approvals) {
		return nil, fmt.Errorf("api: interrupt %s: agent %s has no rule %d", interrupt.ID, source.Agent, source.Rule)
	}
	return &interruptRule{source, thread, definition, definition.Approvals[source.Rule]}, nil
}

// sourceOfRule returns where the rule of an interrupt is; nil = it has none.
func sourceOfRule(interrupt agui.Interrupt) (*stream.ApprovalSource, error) {
	source, err := stream.ApprovalSourceOf(interrupt)
	if source != nil || err != nil {
		return source, err
	}
	question, err := stream.QuestionSourceOf(interrupt)
	if question.Quorum == 0 || err != nil {
		return nil, err
	}
	return &stream.ApprovalSource{Agent: question.Agent, Revision: question.Revision, Step: pipeline.RemotePath, OpenedAt: question.OpenedAt, Quorum: question.Quorum}, nil
}

// stepRules returns the definition with the approval rules of a step in place of the agent's. The
// steps of a pipeline are in the definition; those of a program are in the log, at source.Tree.
func (s *Service) stepRules(ctx context.Context, thread stream.Thread, d *agents.Definition, source *stream.ApprovalSource) (*agents.Definition, error) {
	if source.Tree == 0 {
		return pipeline.Rules(d, source.Step)
	}
	var stored struct {
		Tree json.RawMessage `json:"tree"`
	}
	if err := s.finder.Log.Kept(ctx, thread, source.Tree, &stored); err != nil {
		return nil, err
	}
	d, err := pipeline.WithTree(d, stored.Tree)
	if err != nil {
		return nil, err
	}
	return pipeline.Rules(d, source.Step)
}

// authorize returns the rule of an interrupt (see ruleOf), if the caller may decide about the interrupt
// now. Otherwise the error is 403 not_an_approver, or that of the policies. Nothing about the interrupt is
// told to other callers, so authorize comes first. pointer is the JSON pointer to the decision in the
// request.
func (s *Service) authorize(ctx context.Context, thread stream.Thread, interrupt *agui.Interrupt, pointer string) (*interruptRule, error) {
	rule, err := s.ruleOf(ctx, thread, interrupt)
	if err != nil {
		return nil, err
	}
	isApprover, mayDecide := rule.eligibility(request.Caller(ctx))
	if !mayDecide {
		return nil, forbidden("not_an_approver", "the caller is not an approver of this interrupt", pointer)
	}
	return rule, s.access.CheckInterrupt(ctx, thread, policy.DecideInterrupt, isApprover)
}

// eligibility tells whether the rule, which may be nil, names a caller as an approver at this time,
// and whether it lets the caller decide. Escalation adds approvers with time. A rule that names
// nobody leaves the decision to those that may decide in the thread. But a rule with notByRequester
// asks for another person, so it makes everyone of the tenant an approver.
func (r *interruptRule) eligibility(caller auth.Principal) (isApprover, mayDecide bool) {
	if r == nil {
		return false, true
	}
	named := r.approval.ApproversAfter(time.Since(r.OpenedAt))
	mayDecide = agents.MayDecide(named, caller.Subject, caller.Roles)
	return mayDecide && (len(named) > 0 || r.approval.NotByRequester), mayDecide
}

// CheckReadable returns nil if the caller may read an interrupt: as a reader of its thread, or as an
// approver.
func (s *Service) CheckReadable(ctx context.Context, thread stream.Thread, interrupt *Interrupt) error {
	rule, err := s.ruleOf(ctx, thread, &interrupt.Interrupt)
	if err != nil {
		return err
	}
	isApprover, _ := rule.eligibility(request.Caller(ctx))
	return s.access.CheckInterrupt(ctx, thread, policy.ReadInterrupt, isApprover)
}

// checkDecision checks a decision of a caller that authorize has accepted, before it is proposed.
// It refuses, with 422, a decision that does not fit the interrupt, and edited arguments that are
// invalid or that another rule covers; with 403, a caller who has contributed to the conversation
// where the rule forbids that. rule is that of authorize, pointer the JSON pointer to the decision
// in the request.
func (s *Service) checkDecision(ctx context.Context, rule *interruptRule, snap *snapshot.Snapshot, interrupt *agui.Interrupt, req Request, pointer string) error {
	if err := s.checkKind(interrupt, req, pointer); rule == nil || err != nil {
		return err
	}
	if rule.Step == pipeline.LimitPath {
		if err := req.checkLimit(pointer); err != nil {
			return err
		}
	}
	// An edit of a resolved interrupt changes nothing, so its arguments are not checked: its
	// call may have been cut from the conversation.
	edits := req.Decision == string(runs.DecisionEdit) && interruptByID(snap.Interrupts, interrupt.ID) != nil
	if !rule.approval.NotByRequester && !edits {
		return nil
	}
	snap, err := s.forRules(ctx, rule, snap)
	if err != nil {
		return err
	}
	if rule.approval.NotByRequester {
		if err := checkNotAuthor(ctx, snap, pointer); err != nil {
			return err
		}
	}
	if !edits {
		return nil
	}
	input, err := s.finder.Log.Input(ctx, snap.Input)
	if err != nil {
		return err
	}
	call, ok := snap.FindCall(interrupt.ToolCallID)
	if !ok { // without the tool's name the rules for the call are unknown
		return fmt.Errorf("api: interrupt %s: its call is not in the conversation", interrupt.ID)
	}
	if err := s.checkArguments(ctx, call.Name, req.Args, pointer); err != nil {
		return err
	}
	return rule.checkOtherRules(snap, call.Name, input, req.Args, pointer)
}

// forRules returns a snapshot of a rule's thread as the rules of its agent see it.
func (s *Service) forRules(ctx context.Context, rule *interruptRule, snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	return snap.ForRules(ctx, s.catalog, rule.thread.Tenant, stream.AgentRevision{Agent: rule.Agent, Revision: rule.Revision})
}

// checkNotAuthor returns a 403 not_by_requester if the caller has contributed to the conversation, or
// if the issuer of the caller's link has and could have used the link.
func checkNotAuthor(ctx context.Context, snap *snapshot.Snapshot, pointer string) error {
	if isAuthor(snap, request.Caller(ctx)) {
		return forbidden("not_by_requester", "the caller has contributed to the conversation, and must not decide about its calls", pointer)
	}
	if link, ok := request.LinkOf(ctx); ok && link.NamesApprover && isAuthor(snap, link.Issuer) {
		return forbidden("not_by_requester",
			"the caller that created the link has contributed to the conversation, and must not create links that decide about its calls without signing in", pointer)
	}
	return nil
}

// CheckIssuer returns a 403 not_by_requester if a decision about an interrupt by the link in ctx
// (request.WithLink) would be refused because of the link's issuer.
func (s *Service) CheckIssuer(ctx context.Context, thread stream.Thread, interrupt *Interrupt) error {
	rule, err := s.ruleOf(ctx, thread, &interrupt.Interrupt)
	if rule == nil || err != nil || !rule.approval.NotByRequester {
		return err
	}
	snap, err := s.forRules(ctx, rule, interrupt.Thread)
	if err != nil {
		return err
	}
	return checkNotAuthor(ctx, snap, "")
}

// NotConfigured returns the 403 not_an_approver for a link whose approver the operator has not
// configured. The page of the link shows it to a person.
func NotConfigured(subject string) *problem.Problem {
	return forbidden("not_an_approver", fmt.Sprintf("%.100q is not configured as an approver", subject), "")
}

// NotPermitted returns the 403 not_an_approver for a link whose approver is configured, and may not
// decide about the interrupt.
func NotPermitted(subject string) *problem.Problem {
	return forbidden("not_an_approver", fmt.Sprintf("%.100q is not an approver of this interrupt: neither its approval rule nor access to the thread permits this person to decide", subject), "/subject")
}

// checkArguments returns a 422 for edited arguments that are invalid by the tool's schema. If no
// worker has announced the schema, it accepts them, and the worker that makes the call validates
// them.
func (s *Service) checkArguments(ctx context.Context, tool string, args json.RawMessage, pointer string) error {
	if s.schemas == nil {
		return nil
	}
	member, reason, err := s.schemas.Check(ctx, tool, args)
	if err != nil || reason == "" {
		return err
	}
	return InvalidAnswer(editPointer(pointer)+member, reason)
}

// checkOtherRules returns a 422 other_approval for edited arguments under which another rule, with
// other approvers or another quorum, would apply to the call. An edit may leave the rule that
// raised the interrupt, but must not evade a stricter one.
func (r *interruptRule) checkOtherRules(snap *snapshot.Snapshot, tool string, input *stream.Input, args json.RawMessage, pointer string) error {
	// The rules judge the edited call as the worker judges a call of the model: with the same
	// agent, state, input and callers.
	encodedInput, err := json.Marshal(input.Input)
	if err != nil {
		return fmt.Errorf("api: encode input: %w", err)
	}
	rule := r.definition.ApprovalRule(agents.ProposedCall{
		Agent: r.definition.Name, Tool: tool, Args: args, State: snap.AgentState(), Input: encodedInput,
		Callers: callersOf(snap),
	})
	if rule < 0 || rule == r.Rule || r.definition.Approvals[rule].SameDeciders(r.approval) {
		return nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "other_approval", "another rule with other approvers applies to the edited arguments: reject the call instead")
	p.Pointer = editPointer(pointer)
	return p
}

// forbidden returns a 403 with a pointer to the decision.
func forbidden(code, detail, pointer string) *problem.Problem {
	p := problem.New(http.StatusForbidden, code, detail)
	p.Pointer = pointer
	return p
}
