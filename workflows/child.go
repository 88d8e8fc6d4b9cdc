package workflows

import (
	"github.com/perdure/perdure/runs"
)

// A subagent works for one tool call of another agent. It is a child workflow with turns of its
// own, and lanes of its own in the run's log. It ends with the result of the call, so the agent
// that made the call sees a tool like any other. Clients talk to the thread only. A cancel reaches
// the subagent as a child of the cancelled workflow.

// child is what a subagent or branch has besides its run; nil = the run is a thread's own.
type child struct {
	runs.Child
	call    runs.ToolCall // that a subagent works for
	replies int           // replies from the parent that have arrived
}

// branch returns the child's place for its activities; nil = the run is a thread's own.
func (c *child) branch() *runs.Child {
	if c == nil {
		return nil
	}
	return &c.Child
}

// depth returns how many agents have handed on the work that arrived here.
func (c *child) depth() int {
	if c == nil {
		return 0
	}
	return c.Depth
}

// prefix begins the ids of the child's steps, which are unique in the run.
func (c *child) prefix() string {
	if c == nil {
		return ""
	}
	return c.Prefix
}

// branchPrefix begins the ids of steps that are a branch's own.
func (c *child) branchPrefix() string {
	if c == nil || c.BranchPath == "" {
		return ""
	}
	return c.BranchPath + "/"
}
