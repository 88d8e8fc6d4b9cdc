package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file decides which tool calls need an approval, and makes AG-UI interrupts of them. The gate
// runs while a model call or a tool step is written; openInterrupts runs later, when the run is
// held or ends.

// approvalGate returns the function that checks a tool call against the approval rules of the agent
// of a step; nil = the agent has none. It evaluates the rules on the state, the input and the
// contributors of snap, which is what the model receives (see Snapshot.ForRules). A call that an
// earlier approval covers ("remember") passes.
func (a *Activities) approvalGate(ctx context.Context, d *agents.Definition, s runs.Step, snap *snapshot.Snapshot) (narration.Gate, error) {
	if len(d.Approvals) == 0 {
		return nil, nil
	}
	snap, err := snap.ForRules(ctx, a.Agents, s.Run.Tenant, stream.AgentRevision{Agent: s.Agent, Revision: s.Revision})
	if err != nil {
		return nil, err
	}
	in, err := a.Log.Input(ctx, snap.Input)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(in.Input)
	if err != nil {
		return nil, fmt.Errorf("activities: encode input: %w", err)
	}
	var callers []*agents.Caller
	for _, c := range snap.Contributors {
		callers = append(callers, (*agents.Caller)(c.Principal))
	}
	return func(tool, arguments string) *runs.Approval {
		// The first rule that applies asks; below 0 = none does.
		rule := d.ApprovalRule(agents.ProposedCall{
			Agent: d.Name, Tool: tool, Args: json.RawMessage(arguments),
			State: snap.AgentState(), Input: input, Callers: callers,
		})
		if rule < 0 || isRemembered(snap.Remembered, tool, d.RuleDigest(rule), arguments) {
			return nil
		}
		return newApproval(d, rule, arguments)
	}, nil
}

// newApproval returns what the workflow needs of a rule to wait for decisions: digests, numbers and
// durations. The names of approvers stay in the definition, because the API checks who may decide.
// rule is the index of the rule in d.
func newApproval(d *agents.Definition, rule int, arguments string) *runs.Approval {
	approval := approvalOf(d.Approvals[rule])
	approval.Rule, approval.RuleDigest, approval.ArgsDigest = rule, d.RuleDigest(rule), runs.DigestArgs(arguments)
	// Arguments that differ only in form have the same canonical digest. Most have the canonical
	// form already.
	if digest := runs.CanonicalDigest(arguments); digest != approval.ArgsDigest {
		approval.Canonical = digest
	}
	return approval
}

// approvalOf returns what the workflow needs of a rule that is about no call.
func approvalOf(r agents.Approval) *runs.Approval {
	expires, onExpiry := r.Deadline()
	return &runs.Approval{Quorum: r.Quorum, Remind: r.Remind, Escalate: r.Escalations(), Expires: expires, OnExpiry: runs.OnExpiry(onExpiry)}
}

// openInterrupts returns the open interrupts that approvers and users decide, as AG-UI shows them,
// in the order of the calls. Client tool calls are no AG-UI interrupts, and decided ones were
// announced before.
func (a *Activities) openInterrupts(ctx context.Context, run stream.Run, s *runs.Interrupts) ([]agui.Interrupt, error) {
	var announced []agui.Interrupt
	for _, c := range s.Items {
		var i agui.Interrupt
		var err error
		switch {
		case c.Decision != nil:
			continue
		case c.Question != nil && c.Question.Remote:
			i, err = a.remoteInterrupt(ctx, s, c)
		case c.Question != nil:
			i, err = a.questionInterrupt(ctx, s, c)
			i.ToolCallID = c.ID
		case c.Approval != nil:
			i, err = a.approvalInterrupt(ctx, run.Thread, s, c)
			i.ToolCallID = c.ID
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		i.ID = interruptID(run, c.Name())
		if source := s.Source(c); source.CallID != "" {
			i.SubagentRunID = subagentID(source.CallID)
		}
		if !c.Expires.IsZero() {
			i.ExpiresAt = c.Expires.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		announced = append(announced, i)
	}
	return announced, nil
}

// interruptID returns the ID of an interrupt, which clients use in their decisions. name is
// runs.Interrupt.Name.
func interruptID(run stream.Run, name string) string { return run.Identify("int", name) }

// approvalInterrupt returns the interrupt of a tool call that needs an approval, of an approve
// step, or of an exceeded limit. The three differ in their message and in the schema of the
// decision.
func (a *Activities) approvalInterrupt(ctx context.Context, t stream.Thread, s *runs.Interrupts, c runs.Interrupt) (agui.Interrupt, error) {
	tool, err := a.toolOf(ctx, t, c)
	if err != nil {
		return agui.Interrupt{}, err
	}
	message, schema := fmt.Sprintf("May %s be called?", tool), approvalSchema
	if s.Exceeded != nil {
		message, schema = a.limitMessage(*s.Exceeded), limitSchema(a.limitArguments(*s.Exceeded))
	} else if record := s.Source(c).QuestionRecord; record > 0 && c.Tool == pipeline.ApproveTool {
		// The message of an approve step is content: the advance that began the step has stored it.
		var stored storedAdvance
		if err := a.Log.Kept(ctx, t, record, &stored); err != nil {
			return agui.Interrupt{}, err
		}
		message = cmp.Or(stored.Question, message)
	}
	metadata, err := interruptMetadata(s, c)
	return agui.Interrupt{Reason: "tool_call", Message: message, ResponseSchema: json.RawMessage(schema), Metadata: metadata}, err
}

// toolOf returns the name of the tool of a call. That of a client's tool is content, which only the log
// has.
func (a *Activities) toolOf(ctx context.Context, t stream.Thread, c runs.Interrupt) (string, error) {
	if !c.ForClient {
		return c.Tool, nil
	}
	snap, err := a.Snapshots.Latest(ctx, t, 0)
	if err != nil {
		return "", err
	}
	call, _ := snap.FindCall(c.ID)
	return call.Name, nil
}

// interruptMetadata returns the metadata of an interrupt: the rule, by which the API finds out who
// may decide, and the digest of the arguments that are to be approved.
func interruptMetadata(s *runs.Interrupts, c runs.Interrupt) (agui.Metadata, error) {
	source := s.Source(c)
	rule, err := json.Marshal(stream.ApprovalSource{
		Agent: source.Agent, Revision: source.Revision, Step: source.Step, Tree: source.Tree,
		Rule: c.Approval.Rule, ArgsDigest: c.Approval.ArgsDigest, OpenedAt: c.Since(s.OpenedAt), Quorum: max(1, c.Approval.Quorum),
		Limit: s.Exceeded != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("activities: encode question: %w", err)
	}
	digest, err := json.Marshal(c.Approval.ArgsDigest)
	if err != nil {
		return nil, fmt.Errorf("activities: encode digest: %w", err)
	}
	return agui.Metadata{"perdure.argsDigest": digest, stream.MetadataApproval: rule}, nil
}

// approvalSchema is the JSON Schema of a decision about a tool call. Clients make forms of it.
const approvalSchema = `{"type":"object","required":["approved"],"properties":{` +
	`"approved":{"type":"boolean","description":"Whether the call may be made."},` +
	`"editedArgs":{"type":"object","description":"Arguments for the call, in place of the model's."},` +
	`"content":{"type":"string","description":"If the call is not approved: a result for the model in its place."},` +
	`"reason":{"type":"string","description":"If the call is not approved: the reason, which the model receives."},` +
	`"remember":{"enum":[false,true,"arguments","tool"],"description":"If the call is approved unchanged: the further calls of this tool in this thread that the approval covers. true and arguments: calls with equal arguments. tool: all calls."}}}`
