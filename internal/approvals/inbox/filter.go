package inbox

import (
	"slices"
	"time"

	"github.com/perdure/perdure/agents"
)

// Filter picks approvals. What is zero picks all.
type Filter struct {
	Agent, Tool, Thread string
	// Until picks those that were asked for by then.
	Until time.Time
	// Assignee picks those that somebody may decide.
	Assignee *Assignee
}

// Assignee is a person, or whoever has a role.
type Assignee struct {
	Subject string
	Roles   []string
	// Caller says that this is a person with all their roles, as opposed to a name: what they may
	// not decide because they asked for it does not wait for them. Neither does what they have
	// voted for, unless there are votes for something else: then a quorum may need them to change
	// their vote.
	Caller bool
}

// facts are what filters look at.
type facts struct {
	thread, agent, tool string
	requestedAt         time.Time
	approvers           []string
	requester           string // if they may not decide
	voters              []string
}

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

func (q *Filter) picks(f *facts) bool {
	return (q.Agent == "" || q.Agent == f.agent) && (q.Tool == "" || q.Tool == f.tool) && (q.Thread == "" || q.Thread == f.thread) &&
		(q.Until.IsZero() || !f.requestedAt.After(q.Until)) && (q.Assignee == nil || q.Assignee.mayDecide(f))
}

// Picks reports whether an event is about an approval that the filter picks.
func (q *Filter) Picks(e *Event) bool {
	f := factsOf(&e.Approval)
	if e.Type != Opened {
		f.voters = nil // who has approved wants to know what becomes of it
	}
	return q.picks(&f)
}

func (a *Assignee) mayDecide(f *facts) bool {
	if !agents.MayDecide(f.approvers, a.Subject, a.Roles) {
		return false
	}
	return !a.Caller || a.Subject == "" || a.Subject != f.requester && !slices.Contains(f.voters, a.Subject)
}
