package inbox

import (
	"slices"
	"time"

	"github.com/perdure/perdure/agents"
)

// Filter selects interrupts. A zero field selects all.
type Filter struct {
	Agent, Tool, Thread string
	// Until selects the interrupts that were opened at this time or before.
	Until time.Time
	// Assignee selects the interrupts that this person or role may decide.
	Assignee *Assignee
}

// Assignee is a person, by subject and roles, or any person with one of the roles.
type Assignee struct {
	Subject string
	Roles   []string
	// Caller means that this is the authenticated caller, with all roles, rather than a name from a
	// query. It excludes interrupts that the caller must not decide as the run's requester. It also
	// excludes those that the caller has voted for, unless the votes are for different arguments:
	// then the quorum may need the caller to change the vote.
	Caller bool
}

// facts are the properties of an interrupt that filters compare.
type facts struct {
	thread, agent, tool string
	requestedAt         time.Time
	approvers           []string
	// requester is set only if the requester must not decide.
	requester string
	// voters are the subjects of the votes; nil if the votes are for different arguments.
	voters []string
}

// factsOf returns the facts of an interrupt.
func factsOf(a *Approval) facts {
	f := facts{thread: a.ThreadID, agent: a.Agent, tool: a.ToolName, requestedAt: a.RequestedAt, approvers: a.Approvers}
	if a.NotByRequester {
		f.requester = a.Requester
	}
	for _, d := range a.Decisions {
		if d.ArgsDigest != a.Decisions[0].ArgsDigest {
			f.voters = nil
			break
		}
		if d.By != "" {
			f.voters = append(f.voters, d.By)
		}
	}
	return f
}

// picks reports whether the filter selects an interrupt with these facts.
func (q *Filter) picks(f *facts) bool {
	return (q.Agent == "" || q.Agent == f.agent) && (q.Tool == "" || q.Tool == f.tool) && (q.Thread == "" || q.Thread == f.thread) &&
		(q.Until.IsZero() || !f.requestedAt.After(q.Until)) && (q.Assignee == nil || q.Assignee.mayDecide(f))
}

// Picks reports whether the filter selects the interrupt of an event.
func (q *Filter) Picks(e *Event) bool {
	f := factsOf(&e.Approval)
	if e.Type != Opened {
		f.voters = nil // voters follow the events of what they have voted for
	}
	return q.picks(&f)
}

// mayDecide reports whether the assignee may decide an interrupt, see Assignee.Caller.
func (a *Assignee) mayDecide(f *facts) bool {
	if !agents.MayDecide(f.approvers, a.Subject, a.Roles) {
		return false
	}
	return !a.Caller || a.Subject == "" || a.Subject != f.requester && !slices.Contains(f.voters, a.Subject)
}
