package schedules

import (
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/stream"
)

// Actor returns the principal as which the runs of a schedule of a tenant act: the service RunAs,
// with the roles that the operator gives to the service now, or else the requester without roles. ok
// is false if the operator has not configured the service.
func (s *Stored) Actor(tenant string, known *principals.Principals) (actor auth.Principal, ok bool) {
	if s.RunAs != "" {
		return known.Find(principals.Service, tenant, s.RunAs)
	}
	actor.Tenant = tenant
	if s.Requester != nil {
		actor.Subject = s.Requester.Subject
	}
	return actor, true
}

// Accepts reports whether the runs of a schedule may use a thread with an owner. Everybody can
// foretell the ID of a thread that does not exist, begin the thread, and share it with the actor. So
// the thread must belong to the actor, or to its owner at the time when the schedule was written.
func (s *Stored) Accepts(a *stream.Access, actor auth.Principal) bool {
	owner := ""
	if a.Owner != nil {
		owner = *a.Owner
	}
	return owner == actor.Subject || s.ThreadOwner != nil && owner == *s.ThreadOwner
}

// MayBegin reports whether the runs of a schedule may begin its thread. A thread that belonged to
// another caller when the schedule was written has been deleted: the actor had a share of it at most,
// which ended with the thread.
func (s *Stored) MayBegin(actor auth.Principal) bool {
	return s.ThreadOwner == nil || *s.ThreadOwner == actor.Subject
}
