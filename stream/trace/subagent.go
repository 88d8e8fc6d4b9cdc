package trace

import (
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// agentOn returns the agent on a lane. An agent whose beginning the log lacks counts as the run's.
func (f *Fold) agentOn(lane stream.Lane) *agent {
	a := f.agents[lane]
	if a == nil {
		a = &agent{node: f.root}
		f.agents[lane] = a
	}
	return a
}

// beginSubagent begins a subagent, or a branch: only subagents have a revision.
func (f *Fold) beginSubagent(rec *stream.Record, e *agui.SubagentStarted) {
	owner, kind := f.agentOn(childOwner(rec.Lane)), KindBranch
	parent := owner.container()
	if _, ok := e.Metadata["perdure.revision"]; ok {
		kind, parent = KindSubagent, owner.callParent()
	}
	n := f.begin(rec, rec.Time, parent, kind, e.Name)
	n.span.SubagentRunID = e.SubagentRunID
	if kind == KindSubagent {
		n.span.Agent = e.Name
		// Readers of a hidden step do not know the call, but the subagent's ID is made of it.
		n.span.ToolCallID = "call_" + strings.TrimPrefix(e.SubagentRunID, "sub_")
		f.callWith(n.span.ToolCallID, e.Name).node = n
	}
	f.agents[rec.Lane] = &agent{node: n}
	f.subagents[e.SubagentRunID] = n
}

// callWith returns the call with an ID, which may be new.
func (f *Fold) callWith(id, name string) *call {
	c := f.calls[id]
	if c == nil {
		c = &call{id: id, name: name}
		f.calls[id] = c
	}
	return c
}

// endSubagent ends a subagent or branch by its event.
func (f *Fold) endSubagent(rec *stream.Record, raw []byte) error {
	decoded, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	switch e := decoded.(type) {
	case *agui.SubagentFinished:
		n := f.subagents[e.SubagentRunID]
		if n == nil {
			break
		}
		f.closeAgent(n, rec.Time)
		f.touch(n, rec)
		if e.Outcome != nil && e.Outcome.Type == agui.SubagentSuspended {
			n.span.Status = StatusWaiting
			break
		}
		f.end(n, rec.Time, StatusFinished)
	case *agui.SubagentError:
		n := f.subagents[e.SubagentRunID]
		if n == nil {
			break
		}
		f.closeAgent(n, rec.Time)
		f.touch(n, rec)
		if e.Code == codeCancelled {
			f.end(n, rec.Time, StatusCancelled)
			break
		}
		f.fail(n, rec.Time, newError(e.Code, e.Message, ""))
	}
	return nil
}

// codeCancelled is the code of what was cancelled.
const codeCancelled = "cancelled"

// closeAgent ends the spans of a subagent or branch that are open.
func (f *Fold) closeAgent(n *node, at time.Time) {
	for _, a := range f.agents {
		if a.node != n {
			continue
		}
		f.closeTurn(a, at)
		for i := len(a.steps) - 1; i >= 0; i-- {
			f.end(a.steps[i], at, StatusFinished)
		}
		a.steps = nil
		f.end(a.wait, at, StatusFinished)
	}
}
