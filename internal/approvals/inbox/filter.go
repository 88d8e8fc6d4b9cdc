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
	// Reader selects the interrupts that this caller may read; nil = all.
	Reader *Reader
}

// Reader is a caller that reads the inbox.
type Reader struct {
	Subject string
	Roles   []string
	// MayRead reports whether the caller may read an interrupt of a thread. isApprover tells whether
	// the interrupt makes the caller an approver.
	MayRead func(thread string, isApprover bool) bool
}

// Reads reports whether the caller may read an interrupt.
func (r *Reader) Reads(a *Approval) bool {
	p := propertiesOf(a)
	return r.reads(&p)
}

// reads is Reads for the properties. An interrupt that names no approvers makes everyone an approver
// only if its contributors must not decide, because another person has to decide then.
func (r *Reader) reads(p *properties) bool {
	isApprover := agents.MayDecide(p.approvers, r.Subject, r.Roles)
	if len(p.approvers) == 0 {
		isApprover = p.notByRequester
	}
	return r.MayRead(p.thread, isApprover)
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
	// notByRequester tells that contributors must not decide; contributors is set only then.
	notByRequester bool
	contributors   []string
	// voters are the subjects of the votes; nil if the votes are for different arguments.
	voters []string
}

// propertiesOf returns the facts of an interrupt.
func propertiesOf(a *Approval) properties {
	p := properties{thread: a.ThreadID, agent: a.Agent, tool: a.ToolName, requestedAt: a.RequestedAt, approvers: a.Approvers}
	if p.notByRequester = a.NotByRequester; p.notByRequester {
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
		(f.Until.IsZero() || !p.requestedAt.After(f.Until)) && (f.Assignee == nil || f.Assignee.mayDecide(p)) &&
		(f.Reader == nil || f.Reader.reads(p))
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
