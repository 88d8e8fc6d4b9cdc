package workflows

import (
	"github.com/perdure/perdure/runs"
)

// A child is a run in a workflow of its own, agent.child.v1: a subagent or a branch. It has turns
// of its own, and lanes of its own in the run's log. A subagent works for one tool call of another
// agent, and ends with the result of the call, so that agent sees a tool like any other.
//
// Clients talk to the thread only. A cancel reaches a child through Temporal, from the workflow
// that started it.

// child is what a subagent or branch has besides its run. Its methods accept nil, which stands for
// a thread's own run.
type child struct {
	runs.Child
	call    runs.ToolCall // the call that a subagent works for; zero in a branch
	replies int           // replies received from the parent, over all executions
}

// ref returns the child for the inputs of its activities; nil = the run is a thread's own.
func (c *child) ref() *runs.Child {
	if c == nil {
		return nil
	}
	return &c.Child
}

// depth returns how many agents above this run have handed work on; 0 = the run is a thread's own.
func (c *child) depth() int {
	if c == nil {
		return 0
	}
	return c.Depth
}

// prefix returns the start of the IDs of the child's steps, which makes them unique in the run.
func (c *child) prefix() string {
	if c == nil {
		return ""
	}
	return c.Prefix
}

// branchPrefix returns the start of the IDs of steps that a branch has outside of its active step;
// "" = the run is no branch's.
func (c *child) branchPrefix() string {
	if c == nil || c.BranchPath == "" {
		return ""
	}
	return c.BranchPath + "/"
}
