package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// An agent of a tenant can hand work to agents of the platform: it writes their task, and the state
// that they read. Approval rules of an agent of the platform must not trust what the tenant's
// administrators have written into definitions. So the fold keeps which agents of the tenant have
// taken part in a thread, and ForRules shows the thread to the rules accordingly.

// addTenantAgents adds those of some agents that belong to the tenant, unless they are known. Like a
// new contributor, a new agent ends the remembered approvals.
func (f *folder) addTenantAgents(all ...stream.AgentRevision) {
	for _, a := range all {
		if !stream.IsTenantRevision(a.Revision) || slices.Contains(f.snap.TenantAgents, a) {
			continue
		}
		f.snap.TenantAgents = append(slices.Clip(f.snap.TenantAgents), a)
		f.snap.Remembered = nil
	}
}

// Publications finds the principals who have published a revision of a tenant's agent, nil for an
// anonymous one. It fails if nobody has.
type Publications interface {
	Authors(ctx context.Context, tenant string, agent stream.AgentRevision) ([]*auth.Principal, error)
}

// ForRules returns the thread of a tenant as the approval rules of an agent see it. The rules of a
// tenant's agent see s itself: who publishes it writes its rules too. For those of an agent of the
// platform, after agents of the tenant have taken part in the thread, the authors of these agents
// are contributors, the state is unknown, and approvals of a tenant's agent with the same name are
// not remembered. It reads the publications of all these agents.
func (s *Snapshot) ForRules(ctx context.Context, publications Publications, tenant string, rules stream.AgentRevision) (*Snapshot, error) {
	if len(s.TenantAgents) == 0 || stream.IsTenantRevision(rules.Revision) {
		return s, nil
	}
	f := folder{snap: *s}
	for _, a := range s.TenantAgents {
		authors, err := publications.Authors(ctx, tenant, a)
		if err != nil {
			return nil, err
		}
		for _, p := range authors {
			f.addContributor(p, false)
		}
	}
	f.snap.Remembered = s.Remembered
	if slices.ContainsFunc(s.TenantAgents, func(a stream.AgentRevision) bool { return a.Agent == rules.Agent }) {
		f.snap.Remembered = nil
	}
	f.snap.hidesState = true
	return &f.snap, nil
}
