package trace

import (
	"strings"

	"github.com/perdure/perdure/stream"
)

// stepModel is the last part of the IDs of steps that call the model of an agent; the part before it
// is the number of the turn. Tool calls of the turn have tools/INDEX there.
const stepModel = "model"

// agent is what an agent lane has at a moment: the run's own agent, a subagent or a branch. Lanes
// are used again, so a later subagent replaces an earlier one.
type agent struct {
	node *node // the run, the subagent or the branch
	// steps are the open steps of its pipeline, the outermost first; compensation has those that
	// undo others, nil = nothing is undone.
	steps        []*node
	compensation *node
	// turn is the turn of the last model call, model the span of that call; nil = none is open.
	// turnID is what the IDs of the turn's steps have in common.
	turn   *node
	model  *node
	turnID string
	wait   *node // the wait of the pipeline; nil = it does not wait
	// calls are the IDs of the tool calls of the agent's last message, by index.
	calls []string
}

// container returns the innermost open span of an agent that contains turns.
func (a *agent) container() *node {
	if len(a.steps) > 0 {
		return a.steps[len(a.steps)-1]
	}
	if a.compensation.isOpen() {
		return a.compensation
	}
	return a.node
}

// callParent returns the span that contains the agent's tool calls: its turn, or its step.
func (a *agent) callParent() *node {
	if a.turn.isOpen() {
		return a.turn
	}
	return a.container()
}

// call is a tool call of a model, or of a step.
type call struct {
	id, name string
	agent    *agent // whose call it is; nil = of an earlier run
	node     *node  // its span, or that of its subagent; nil = it has not begun
}

// toolOwner returns the lane of the agent to which a tool lane belongs: main for t0, s1 for s1t0.
func toolOwner(lane stream.Lane) stream.Lane {
	owner, _, _ := strings.Cut(string(lane), "t")
	if owner == "" {
		return stream.LaneMain
	}
	return stream.Lane(owner)
}

// childOwner returns the lane of the agent that has begun the subagent or branch on a lane: main for
// s0, s2 for s2s0.
func childOwner(lane stream.Lane) stream.Lane {
	owner := string(lane)[:max(0, strings.LastIndexByte(string(lane), 's'))]
	if owner == "" {
		return stream.LaneMain
	}
	return stream.Lane(owner)
}
