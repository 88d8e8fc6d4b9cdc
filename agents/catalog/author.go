package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Authors returns the principals who have published a revision of an agent that belongs to a
// tenant, each once, in the order of their first publication, or who has written a draft; a nil one
// is an anonymous caller. Without either the error is ErrUnknownRevision. It reads the bucket, and
// does not require Watch.
func (c *Catalog) Authors(ctx context.Context, tenant string, agent stream.AgentRevision) ([]*auth.Principal, error) {
	all, err := c.storedPublications(ctx, addressOf(tenant, agent.Agent))
	if err != nil {
		return nil, err
	}
	var authors []*auth.Principal
	for _, p := range all {
		isKnown := func(known *auth.Principal) bool { return isSamePrincipal(known, p.By) }
		if p.Revision == agent.Revision && !slices.ContainsFunc(authors, isKnown) {
			authors = append(authors, p.By)
		}
	}
	if len(authors) == 0 {
		return c.draftAuthors(ctx, tenant, agent)
	}
	return authors, nil
}

// draftAuthors is Authors for a revision that was not published.
func (c *Catalog) draftAuthors(ctx context.Context, tenant string, agent stream.AgentRevision) ([]*auth.Principal, error) {
	entry, err := c.kv.Get(ctx, addressOf(tenant, agent.Agent).draftKey(agent.Revision))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, &UnknownError{Agent: agent.Agent, Revision: agent.Revision}
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: draft of %s: %w: %w", agent.Agent, stream.ErrUnavailable, err)
	}
	var record draft
	if err := json.Unmarshal(entry.Value(), &record); err != nil {
		return nil, fmt.Errorf("catalog: draft of %s: %w", agent.Agent, err)
	}
	return []*auth.Principal{record.By}, nil
}

// isSamePrincipal reports whether two principals are the same one; nil is an anonymous caller.
func isSamePrincipal(a, b *auth.Principal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Tenant == b.Tenant && a.Subject == b.Subject && slices.Equal(a.Roles, b.Roles)
}
