package decisions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// fixture is a Service on a log with a thread. Its run, which ann requested, has ended with an
// interrupt.
type fixture struct {
	*Service
	thread *snapshot.Snapshot
}

// setup returns a fixture whose interrupt was opened at a time, under one of the rules.
func setup(t *testing.T, asked time.Time, rule int, rules ...agents.Approval) *fixture {
	t.Helper()
	ctx, l := t.Context(), streamtest.Open(t)
	kept, err := catalog.Open(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules {
		rules[i].Tools = []string{"pay"}
	}
	d := &agents.Definition{Name: "a", Model: "t/m", Tools: []string{"pay"}, Approvals: rules}
	if _, err := kept.Publish(ctx, d, false); err != nil {
		t.Fatal(err)
	}
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r"}
	input := &stream.Input{Requester: &auth.Principal{Tenant: "default", Subject: "ann"}}
	p, err := l.ProposeInput(ctx, run, [32]byte{1}, input)
	if err != nil {
		t.Fatal(err)
	}
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if place.After, err = l.OpenStep(ctx, place, stream.Opening{RunID: "r", Input: p.Seq}, &agui.RunStarted{ThreadID: "t", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	attempt, _, err := l.Begin(ctx, place)
	if err != nil {
		t.Fatal(err)
	}
	defer attempt.Close()
	call := agui.Message{ID: "m", Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: "c", Name: "pay", Arguments: `{"amount":60}`}}}
	if place.After, err = attempt.Finish(ctx, &stream.Result{Messages: []agui.Message{call}}); err != nil {
		t.Fatal(err)
	}
	by, err := json.Marshal(stream.ApprovalSource{Agent: "a", Revision: d.Revision(), Rule: rule, OpenedAt: asked})
	if err != nil {
		t.Fatal(err)
	}
	question := agui.Interrupt{ID: "i", Reason: "tool_call", ToolCallID: "c", Metadata: agui.Metadata{stream.MetadataApproval: by}}
	end := &agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{question}}}
	if _, _, err := l.Seal(ctx, place, end); err != nil {
		t.Fatal(err)
	}
	f := &fixture{Service: &Service{finder: &lookup.Finder{Log: l}, catalog: kept, access: everybody{}}}
	if f.thread, err = snapshot.NewStore(l).Latest(ctx, run.Thread, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

// everybody is an Access that permits everything.
type everybody struct{}

func (everybody) Check(context.Context, stream.Thread, policy.Action) error { return nil }

func (everybody) CheckInterrupt(context.Context, stream.Thread, policy.Action, bool) error {
	return nil
}

// checkDecider checks the caller and its decision.
func (f *fixture) checkDecider(ctx context.Context, interrupt *agui.Interrupt, req Request, pointer string) error {
	rule, err := f.authorize(ctx, stream.Thread{}, interrupt, pointer)
	if err != nil {
		return err
	}
	return f.checkDecision(ctx, rule, f.thread, interrupt, req, pointer)
}

// refusalCode returns the code with which a decision of a caller is refused, or "".
func (f *fixture) refusalCode(t *testing.T, caller *auth.Principal, v Request) string {
	t.Helper()
	ctx := t.Context()
	if caller != nil {
		ctx = auth.With(ctx, *caller)
	}
	return f.refusalCodeWith(ctx, t, v)
}

// refusalCodeWith is refusalCode with the caller of a context.
func (f *fixture) refusalCodeWith(ctx context.Context, t *testing.T, v Request) string {
	t.Helper()
	err := f.checkDecider(ctx, &f.thread.Interrupts[0], v, "/at")
	var p *problem.Problem
	if err != nil && !errors.As(err, &p) {
		t.Fatal(err)
	}
	if p == nil {
		return ""
	}
	if p.Pointer[:3] != "/at" {
		t.Errorf("pointer of the problem = %s, want prefix /at", p.Pointer)
	}
	return p.Code
}

// principalOf returns a principal of the default tenant.
func principalOf(subject string, roles ...string) *auth.Principal {
	return &auth.Principal{Tenant: "default", Subject: subject, Roles: roles}
}

var approval = Request{Decision: "approve"}

// TestApproversMayDecide: the approvers may decide, and after the escalation time those that the
// rule escalates to. No other caller may.
func TestApproversMayDecide(t *testing.T) {
	t.Parallel()
	rule := agents.Approval{Approvers: []string{"role:finance", "bob"}, Escalate: []agents.Escalation{{After: time.Hour, To: []string{"role:manager"}}}}
	for asked, cases := range map[time.Duration]map[string]*auth.Principal{
		time.Minute: {"": principalOf("bob"), "not_an_approver": principalOf("eve", "manager", "financier")},
		time.Hour:   {"": principalOf("eve", "manager"), "not_an_approver": principalOf("eve", "clerk")},
	} {
		f := setup(t, time.Now().Add(-asked), 0, rule)
		for want, caller := range cases {
			for _, v := range []Request{approval, {Decision: "reject"}, {Decision: "cancel"}} {
				if got := f.refusalCode(t, caller, v); got != want {
					t.Errorf("%s after %s: decision %s: got %q, want %q", caller.Subject, asked, v.Decision, got, want)
				}
			}
		}
		if got := f.refusalCode(t, principalOf("x", "finance"), approval); got != "" {
			t.Errorf("approver by role: got the code %q, want none", got)
		}
		if got := f.refusalCode(t, nil, approval); got != "not_an_approver" {
			t.Errorf("anonymous caller: got the code %q, want not_an_approver", got)
		}
	}
}

// TestRequesterMayNotDecide: with `notByRequester` the run's requester may not decide. All
// anonymous callers count as one person.
func TestRequesterMayNotDecide(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 0, agents.Approval{NotByRequester: true})
	for want, caller := range map[string]*auth.Principal{"": principalOf("bob"), "not_by_requester": principalOf("ann", "any")} {
		if got := f.refusalCode(t, caller, approval); got != want {
			t.Errorf("%s: got %q, want %q", caller.Subject, got, want)
		}
	}
	if got := setup(t, time.Now(), 0, agents.Approval{}).refusalCode(t, principalOf("ann"), approval); got != "" {
		t.Errorf("requester without notByRequester: got the code %q, want none", got)
	}
	anonymous := &snapshot.Snapshot{Contributors: []snapshot.Contributor{{}}}
	if !isAuthor(anonymous, auth.Principal{Tenant: auth.TenantDefault}) || isAuthor(anonymous, *principalOf("bob")) {
		t.Error("isAuthor(anonymous run) = false for an anonymous caller or true for bob, want true and false")
	}
}

// TestEditMayNotMoveToOtherRule: an edit may leave the interrupt's rule. It may not get under
// another rule, unless that has the same approvers.
func TestEditMayNotMoveToOtherRule(t *testing.T) {
	t.Parallel()
	chief := agents.Approval{When: "args.amount > 100", Approvers: []string{"chief"}}
	clerks := agents.Approval{When: "args.amount > 50", Approvers: []string{"bob"}}
	more := agents.Approval{When: "args.amount > 10", Approvers: []string{"bob"}, Remind: time.Hour}
	two := agents.Approval{When: "args.amount > 5", Approvers: []string{"bob"}, NotByRequester: true}
	f := setup(t, time.Now(), 1, chief, clerks, more, two)
	for args, want := range map[string]string{
		`{"amount":70}`: "", `{"amount":20}`: "", `{"amount":1}`: "", `{"amount":101}`: "other_approval", `{}`: "other_approval", `{"amount":6}`: "other_approval",
	} {
		if got := f.refusalCode(t, principalOf("bob"), Request{Decision: "edit", Args: json.RawMessage(args)}); got != want {
			t.Errorf("edit %s: got %q, want %q", args, got, want)
		}
	}
}

// boundedTools is a worker that accepts amounts below ten.
type boundedTools struct{}

func (boundedTools) Missing([]string) []string { return nil }

func (boundedTools) Known() agents.Names { return agents.Names{Others: []string{"*"}} }

func (boundedTools) Fits(json.RawMessage, json.RawMessage) (pointer, reason string, err error) {
	return "", "", nil
}

func (boundedTools) Check(_ context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error) {
	var args struct{ Amount int }
	if err := json.Unmarshal(arguments, &args); err != nil || tool != "pay" {
		return "", "", errors.Join(err, errors.New(tool))
	}
	if args.Amount >= 10 {
		return "/amount", "is too large", nil
	}
	return "", "", nil
}

// TestInvalidEdits: arguments that the tool would refuse are refused before anything is
// written, with their pointer.
func TestInvalidEdits(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 1, agents.Approval{When: "args.amount > 100", Approvers: []string{"chief"}}, agents.Approval{})
	f.schemas = boundedTools{}
	const amount = "/resume/1/payload/editedArgs/amount"
	for args, want := range map[string]string{`{"amount":9}`: "", `{"amount":10}`: amount, `{"amount":101}`: amount} { // whichever rule would apply
		err := f.checkDecider(t.Context(), &f.thread.Interrupts[0], Request{Decision: "edit", Args: json.RawMessage(args)}, "/resume/1/payload")
		var p *problem.Problem
		if errors.As(err, &p) != (want != "") || p != nil && (p.Pointer != want || p.Status != http.StatusUnprocessableEntity) {
			t.Errorf("edit %s: got %v at %+v, want %q", args, err, p, want)
		}
	}
	if p := editPointer(""); p != "/args" {
		t.Errorf("pointer of the decision route = %s, want /args", p)
	}
}

// TestLateEdits: a late edit is not executed. Its caller gets the recorded decision, even
// if the call is not in the conversation.
func TestLateEdits(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 0, agents.Approval{Approvers: []string{"bob"}}, agents.Approval{When: "args.amount > 100"})
	f.schemas = boundedTools{}
	question := f.thread.Interrupts[0]
	f.thread.Answered, f.thread.Interrupts, f.thread.Entries = f.thread.Interrupts, nil, nil
	v := Request{Decision: "edit", Args: json.RawMessage(`{"amount":101}`)}
	if err := f.checkDecider(auth.With(t.Context(), *principalOf("bob")), &question, v, ""); err != nil {
		t.Errorf("late edit: got %v", err)
	}
	var p *problem.Problem
	if err := f.checkDecider(auth.With(t.Context(), *principalOf("eve")), &question, v, ""); !errors.As(err, &p) || p.Code != "not_an_approver" {
		t.Errorf("late edit of a caller that is no approver: got %v, want not_an_approver", err)
	}
}

// TestInterruptWithoutRuleHasNoApprovers: every caller may decide an interrupt without a rule. No
// caller may decide one whose rule cannot be found.
func TestInterruptWithoutRuleHasNoApprovers(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Now(), 3, agents.Approval{})
	var p *problem.Problem
	if err := f.checkDecider(t.Context(), &f.thread.Interrupts[0], approval, ""); err == nil || errors.As(err, &p) && p.Status < http.StatusInternalServerError {
		t.Errorf("unknown rule: got %v, want an internal error", err)
	}
	f = setup(t, time.Now(), 0, agents.Approval{})
	f.thread.Entries = nil
	if err := f.checkDecider(t.Context(), &f.thread.Interrupts[0], Request{Decision: "edit", Args: json.RawMessage("{}")}, ""); err == nil {
		t.Error("edit of an unknown call is accepted, want an error")
	}
	f.thread.Interrupts[0].Metadata = nil
	if got := f.refusalCode(t, nil, approval); got != "" {
		t.Errorf("interrupt without a rule: got the code %q, want none", got)
	}
}
