package api

import (
	"context"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/policy"
)

// findAgent returns the current revision of the agent that a request names, before the body is
// read. Every authenticated caller may run every agent of its tenant and of the platform; threads
// are for fewer (see package access). An unknown agent is a 404.
//
// With a revision it returns that one, published or a draft. Only who may publish the agent may name
// another revision than the current one, which may lack approvals that the current one requires.
func (s *Server) findAgent(ctx context.Context, agent, revision string) (catalog.Published, error) {
	p, err := request.Principal(ctx)
	if err != nil {
		return catalog.Published{}, err
	}
	current, err := s.Catalog.Current(p.Tenant, agent)
	if revision == "" || err == nil && current.Revision == revision {
		return current, err
	}
	auditing.Detail(ctx, audit.DetailRevision, revision[:min(len(revision), maxRevisionBytes)])
	if err := s.access.CheckAgent(ctx, catalog.Referrer(p.Tenant, revision), agent, policy.PublishAgent); err != nil {
		return catalog.Published{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, request.ResponseTimeout)
	defer cancel()
	return s.Catalog.Named(ctx, p.Tenant, agent, revision)
}

// maxRevisionBytes bounds a revision in the audit log. Valid ones are shorter.
const maxRevisionBytes = 100
