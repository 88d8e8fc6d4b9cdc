package sessions

import (
	"context"
	"time"
)

// Summary is what Perdure knows about a session, without its secrets and without the claims of the
// provider.
type Summary struct {
	// Started is when the user signed in.
	Started time.Time `json:"startedAt"`
	// Roles are those of the user at the last renewal of the claims.
	Roles []string `json:"roles"`
}

// OfSubject returns the sessions of a subject of a tenant that have not ended, oldest first.
func (s *Sessions) OfSubject(tenant, subject string) []Summary {
	var all []Summary
	for _, e := range s.index.entries(isOf(tenant, subject)) {
		all = append(all, Summary{Started: e.started.UTC(), Roles: append([]string{}, e.principal.Roles...)})
	}
	return all
}

// isOf returns a match of the sessions of a subject of a tenant.
func isOf(tenant, subject string) func(*entry) bool {
	return func(e *entry) bool { return e.principal.Tenant == tenant && e.principal.Subject == subject }
}

// EndSubject ends the sessions of a subject of a tenant, and returns how many these are. With
// onlyCount it ends none. Errors: auth.ErrUnavailable.
func (s *Sessions) EndSubject(ctx context.Context, tenant, subject string, onlyCount bool) (int, error) {
	ids := s.index.matching(isOf(tenant, subject))
	for _, id := range ids {
		if onlyCount {
			break
		}
		if err := s.end(ctx, id, EndedByDeletion); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
