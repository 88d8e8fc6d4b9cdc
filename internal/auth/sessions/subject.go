package sessions

import "context"

// EndSubject ends the sessions of a subject of a tenant, and returns how many these are. With
// onlyCount it ends none. Errors: auth.ErrUnavailable.
func (s *Sessions) EndSubject(ctx context.Context, tenant, subject string, onlyCount bool) (int, error) {
	ids := s.index.matching(func(e *entry) bool { return e.principal.Tenant == tenant && e.principal.Subject == subject })
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
