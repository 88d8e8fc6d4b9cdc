package snapshot

import (
	"slices"

	"github.com/perdure/perdure/internal/auth"
)

// Contributor is a principal whose content models of the thread have received: in inputs (messages,
// state, context, client tools), steering messages, results of client tool calls, answers to
// questions, and decisions about calls.
type Contributor struct {
	// Principal is the contributor with the roles of that time; nil = an anonymous caller.
	Principal *auth.Principal `json:"principal,omitempty"`
	// OnlyDecides tells that all content of the contributor came with decisions about calls: edited
	// arguments, a reason, a result in place of the call's. A rule with notByRequester does not
	// exclude such an approver, because an approver that edits a call chooses its arguments anyway.
	OnlyDecides bool `json:"onlyDecides,omitempty"`
}

// MaxContributors bounds the contributors of a thread. The API refuses input and steering messages
// of further principals. Concurrent requests, decisions and results of tool calls may exceed it.
const MaxContributors = 256

// is reports whether the contributor is a principal with the same roles.
func (c Contributor) is(p *auth.Principal) bool {
	if c.Principal == nil || p == nil {
		return c.Principal == p
	}
	sameRoles := func() bool {
		return slices.Equal(slices.Sorted(slices.Values(c.Principal.Roles)), slices.Sorted(slices.Values(p.Roles)))
	}
	return c.Principal.Tenant == p.Tenant && c.Principal.Subject == p.Subject && len(c.Principal.Roles) == len(p.Roles) && sameRoles()
}
