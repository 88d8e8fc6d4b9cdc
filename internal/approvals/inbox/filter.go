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
	// Assignee selects the interrupts that this approver may decide.
	Assignee *Assignee
}

// Assignee is an approver, by subject and roles, or any caller with one of the roles.
type Assignee struct {
	Subject string
	Roles   []string
	// Caller means that this is the authenticated caller, with all roles, rather than a name from a
	// query. It excludes interrupts that the caller must not decide as a contributor. It also
	// excludes those that the caller has voted for, unless the votes are for different arguments:
	// then the quorum may need the caller to change the vote.
	Caller bool
}

// properties are the properties of an interrupt that filters compare.
type properties struct {
	thread, agent, tool string
	requestedAt         time.Time
	approvers           []string
	// contributors is set only if they must not decide.
	contributors []string
	// voters are the subjects of the votes; nil if the votes are for different arguments.
	voters []string
}

// propertiesOf returns the facts of an interrupt.
func propertiesOf(a *Approval) properties {
	p := properties{thread: a.ThreadID, agent: a.Agent, tool: a.ToolName, requestedAt: a.RequestedAt, approvers: a.Approvers}
	if a.NotByRequester {
		p.contributors = a.Contributors
	}
	for _, d := range a.Decisions {
		if d.ArgsDigest != a.Decisions[0].ArgsDigest {
			p.voters = nil
			break
		}
		if d.By != "" {
			p.voters = append(p.voters, d.By)
		}
	}
	return p
}

// matches reports whether the filter selects an interrupt with these properties.
func (f *Filter) matches(p *properties) bool {
	return (f.Agent == "" || f.Agent == p.agent) && (f.Tool == "" || f.Tool == p.tool) && (f.Thread == "" || f.Thread == p.thread) &&
		(f.Until.IsZero() || !p.requestedAt.After(f.Until)) && (f.Assignee == nil || f.Assignee.mayDecide(p))
}

// Matches reports whether the filter selects the interrupt of an event.
func (f *Filter) Matches(e *Event) bool {
	p := propertiesOf(&e.Approval)
	if e.Type != Opened {
		p.voters = nil // voters follow the events of what they have voted for
	}
	return f.matches(&p)
}

// mayDecide reports whether the assignee may decide an interrupt, see Assignee.Caller.
func (a *Assignee) mayDecide(p *properties) bool {
	if !agents.MayDecide(p.approvers, a.Subject, a.Roles) {
		return false
	}
	return !a.Caller || a.Subject == "" || !slices.Contains(p.contributors, a.Subject) && !slices.Contains(p.voters, a.Subject)
}
