package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// gate finds out whether people decide about a call before it is made; nil = they do not.
type gate func(tool, arguments string) *workflows.Approval

// gate is that of an agent's rules, on the state and the input as they are now.
func (a *Activities) gate(ctx context.Context, d *agents.Definition, thread *stream.Reduction) (gate, error) {
	if len(d.Approvals) == 0 {
		return nil, nil
	}
	in, err := a.Log.Input(ctx, thread.Input)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(in.Input)
	if err != nil {
		return nil, fmt.Errorf("activities: encode input: %w", err)
	}
	caller, err := encodeCaller(in.Requester)
	if err != nil {
		return nil, err
	}
	return func(tool, arguments string) *workflows.Approval {
		rule := d.Asks(agents.ProposedCall{Agent: d.Name, Tool: tool, Args: json.RawMessage(arguments), State: thread.State, Input: input, Caller: caller})
		if rule < 0 {
			return nil
		}
		r := d.Approvals[rule]
		return &workflows.Approval{Rule: rule, Args: workflows.DigestArgs(arguments), Expires: r.Expires, OnExpiry: workflows.OnExpiry(r.OnExpiry)}
	}, nil
}

// encodeCaller is who asked for a run, as conditions see it: with all members, so that none of them fails
// where one is empty. Nobody is null.
func encodeCaller(p *auth.Principal) (json.RawMessage, error) {
	if p == nil {
		return nil, nil
	}
	caller, err := json.Marshal(map[string]any{"tenant": p.Tenant, "subject": p.Subject, "roles": append([]string{}, p.Roles...)})
	if err != nil {
		return nil, fmt.Errorf("activities: encode caller: %w", err)
	}
	return caller, nil
}

// interrupts are the questions that a run ends with, in the order of the calls.
func interrupts(run stream.Run, w *workflows.Waits) ([]agui.Interrupt, error) {
	var asked []agui.Interrupt
	for _, c := range w.Calls {
		if c.Approval == nil {
			continue
		}
		digest, err := json.Marshal(c.Approval.Args)
		if err != nil {
			return nil, fmt.Errorf("activities: encode digest: %w", err)
		}
		i := agui.Interrupt{
			ID: run.Identify("int", c.ID), Reason: "tool_call", ToolCallID: c.ID,
			Message: fmt.Sprintf("May %s be called?", c.Tool), ResponseSchema: json.RawMessage(approvalSchema),
			Metadata: agui.Metadata{"perdure.argsDigest": digest},
		}
		if !c.Expires.IsZero() {
			i.ExpiresAt = c.Expires.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		}
		asked = append(asked, i)
	}
	return asked, nil
}

// approvalSchema is what an answer to a question about a tool call looks like.
const approvalSchema = `{"type":"object","required":["approved"],"properties":{` +
	`"approved":{"type":"boolean","description":"Whether the call may be made."},` +
	`"editedArgs":{"type":"object","description":"Arguments to make it with, instead of the model's."},` +
	`"content":{"type":"string","description":"If it is not approved: a result to give the model instead."},` +
	`"reason":{"type":"string","description":"If it is not approved: why, for the model."}}}`
