package trace

import (
	"context"
	"path"
	"strconv"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// beginCall begins the unit of a tool call, or of the end of the subagent that has worked for it.
func (f *Fold) beginCall(ctx context.Context, rec *stream.Record, u *unit) error {
	u.kind = unitTool
	a := f.agentOn(toolOwner(rec.Lane))
	var c *call
	if index, err := strconv.Atoi(path.Base(rec.Step)); err == nil {
		if c, err = f.callAt(ctx, a, index); err != nil {
			return err
		}
	}
	switch {
	case c == nil:
		u.node = f.begin(rec, rec.Time, a.callParent(), KindTool, "tool")
		return nil
	case c.node != nil && c.node.span.Kind == KindSubagent:
		u.kind, u.node = unitEnd, c.node
		return nil
	case c.node != nil: // it had ended with a question
		f.reopen(c.node)
		u.node = c.node
	default:
		u.node = f.begin(rec, rec.Time, a.callParent(), KindTool, c.name)
		u.node.span.ToolCallID, c.node = c.id, u.node
	}
	f.touch(u.node, rec)
	return nil
}

// endTool ends a tool call, or lets it wait for the answer to its question.
func (f *Fold) endTool(ctx context.Context, rec *stream.Record, u *unit, result *doneResult) error {
	var answer struct {
		Outcome runs.Outcome `json:"outcome"`
	}
	if err := decodeAnswer(rec, result.Answer, &answer); err != nil {
		return err
	}
	message := ""
	for _, m := range result.Messages {
		if m.Role != agui.RoleTool {
			continue
		}
		message = m.Error
		if err := f.nameCall(ctx, u.node, m.ToolCallID); err != nil {
			return err
		}
	}
	if result.Visibility != stream.VisibleToAll { // clients do not see the results of hidden steps
		message = ""
	}
	if result.Decided != nil {
		u.node.span.Decision = result.Decided.Kind
	}
	switch answer.Outcome {
	case runs.OutcomeInterrupt:
		u.node.span.Status = StatusWaiting
	case runs.OutcomeCancelled:
		f.setCancelled(u)
		f.end(u.node, rec.Time, StatusCancelled)
	case runs.OutcomeError:
		failed := newError(callFailure(u.node.span.Name, result.Decided), clip(message, maxResultError), "")
		if u.attempt != nil {
			u.attempt.Status, u.attempt.Error = StatusFailed, failed
		}
		f.fail(u.node, rec.Time, failed)
	default:
		f.end(u.node, rec.Time, StatusFinished)
	}
	return nil
}

// nameCall sets the call of a span by the result, if the call was not known before.
func (f *Fold) nameCall(ctx context.Context, n *node, callID string) error {
	if n.span.ToolCallID == callID {
		return nil
	}
	n.span.ToolCallID = callID
	c := f.calls[callID]
	if c == nil {
		if err := f.readBefore(ctx); err != nil {
			return err
		}
		known, ok := f.before.FindCall(callID)
		if !ok {
			return nil
		}
		c = f.callWith(callID, known.Name)
	}
	n.span.Name, c.node = c.name, n
	return nil
}

// callAt returns the call of an agent with an index. Without one in the records it is a call of an
// earlier run, whose interrupt this run has resolved; nil = the call is unknown.
func (f *Fold) callAt(ctx context.Context, a *agent, index int) (*call, error) {
	if index < len(a.calls) {
		return f.calls[a.calls[index]], nil
	}
	if err := f.readBefore(ctx); err != nil {
		return nil, err
	}
	answered := map[string]bool{}
	for i := len(f.before.Entries) - 1; i >= 0; i-- {
		m := f.before.Entries[i].Message
		if m.Role == agui.RoleTool {
			answered[m.ToolCallID] = true
		}
		if m.Role != agui.RoleAssistant || m.SubagentRunID != a.node.span.SubagentRunID || index >= len(m.ToolCalls) || answered[m.ToolCalls[index].ID] {
			continue
		}
		return f.callWith(m.ToolCalls[index].ID, m.ToolCalls[index].Name), nil
	}
	return nil, nil
}

// readBefore reads the conversation with which the run began.
func (f *Fold) readBefore(ctx context.Context) (err error) {
	if f.before == nil {
		f.before, err = f.snapshots.At(ctx, f.thread, f.opened)
	}
	return err
}

// callFailure returns the code of a failed call of a tool, which is that of its step. decided is the decision about
// the call; nil = there was no interrupt.
func callFailure(tool string, decided *stream.Decided) string {
	if decided == nil {
		return "tool_failed"
	}
	switch runs.DecisionKind(decided.Kind) {
	case runs.DecisionExpire:
		if tool == agents.EventTool {
			return "timeout"
		}
		return "rejected"
	case runs.DecisionReject, runs.DecisionCancel:
		return "rejected"
	}
	return "tool_failed"
}
