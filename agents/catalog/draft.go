package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/stream"
)

// MaxDrafts is how many drafts of an agent are kept that no run has used. A further draft removes the
// oldest of them. A draft that a run has used is kept like a published revision, because the run
// refers to it.
const MaxDrafts = 20

// PutDraft stores a definition as a draft of an agent of a tenant ("" = of the platform), which need
// not exist, and returns its revision. by nil = an anonymous caller. A definition that was
// published already stays as it is. Errors: ErrTaken, stream.ErrUnavailable.
//
// Several callers may put and use the same draft concurrently. The record is written before the
// definition, and removed before it (removeDraft): so a definition that this call returns is there.
func (c *Catalog) PutDraft(ctx context.Context, tenant string, d *agents.Definition, by *auth.Principal) (revision string, err error) {
	body, err := agents.Encode(d)
	if err != nil {
		return "", err
	}
	agent, revision := addressOf(tenant, d.Name), RevisionOf(tenant, d)
	published, err := c.storedPublications(ctx, agent)
	if err != nil {
		return "", err
	}
	if tenant != "" && len(published) == 0 {
		if err := c.checkName(ctx, d.Name); err != nil {
			return "", err
		}
	}
	if hasRevision(published, revision) {
		return revision, nil
	}
	err = c.putRecord(ctx, agent.draftKey(revision), draft{Tenant: tenant, By: by, At: time.Now().UTC(), Bytes: int64(len(body))})
	if err == nil {
		// Put, and not Create: it makes a removal fail that has begun before the record was written.
		_, err = c.kv.Put(ctx, agent.draftDefinitionKey(revision), body)
	}
	if err != nil {
		return "", fmt.Errorf("catalog: draft of %s: %w: %w", agent.name, stream.ErrUnavailable, err)
	}
	if err := c.awaitMemory(ctx, agent.name, func() bool { _, ok := c.drafts[agent][revision]; return ok }); err != nil {
		return "", err
	}
	for _, old := range c.unusedDrafts(agent) {
		if err := c.removeDraft(ctx, agent, old.revision, old.At); err != nil {
			return "", err
		}
	}
	return revision, nil
}

// putRecord creates the record of a draft. An existing one gets the time of the new one, so that it
// is not the next to be removed, and a removal that has begun fails.
func (c *Catalog) putRecord(ctx context.Context, key string, created draft) error {
	for {
		record, write := created, func(value []byte) error {
			_, err := c.kv.Create(ctx, key, value)
			return err
		}
		entry, err := c.kv.Get(ctx, key)
		if err == nil {
			if err := json.Unmarshal(entry.Value(), &record); err != nil {
				return err
			}
			record.At = created.At
			write = func(value []byte) error {
				_, err := c.kv.Update(ctx, key, value, entry.Revision())
				return err
			}
		} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		value, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if err = write(value); !stream.IsConflict(err) {
			return err
		}
		if err := durations.Sleep(ctx, pollInterval); err != nil { // another caller was faster, and the replica that answers may lag
			return err
		}
	}
}

// unusedDraft is the record of a draft that no run has used, with its revision.
type unusedDraft struct {
	draft

	revision string
}

// unusedDrafts returns the oldest drafts of an agent that no run has used, beyond MaxDrafts.
func (c *Catalog) unusedDrafts(agent address) []unusedDraft {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var unused []unusedDraft
	for revision, d := range c.drafts[agent] {
		if !d.Used {
			unused = append(unused, unusedDraft{d, revision})
		}
	}
	slices.SortFunc(unused, func(a, b unusedDraft) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.revision, b.revision)) })
	return unused[:max(0, len(unused)-MaxDrafts)]
}

// removeDraft removes a draft that was written at a time, unless a run has used it, or it was written
// again. Each removal requires that the key has not changed since it was read: the record shows a
// concurrent use, and the definition a concurrent PutDraft.
func (c *Catalog) removeDraft(ctx context.Context, agent address, revision string, at time.Time) error {
	definition, err := c.kv.Get(ctx, agent.draftDefinitionKey(revision))
	if err == nil {
		err = c.purge(ctx, agent.draftKey(revision), func(record draft) bool { return !record.Used && record.At.Equal(at) })
	}
	if err == nil {
		err = c.kv.Purge(ctx, agent.draftDefinitionKey(revision), jetstream.LastRevision(definition.Revision()))
	}
	if err == nil || errors.Is(err, errStays) || errors.Is(err, jetstream.ErrKeyNotFound) || stream.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("catalog: draft of %s: %w: %w", agent.name, stream.ErrUnavailable, err)
}

// errStays reports that a draft is not removed.
var errStays = errors.New("catalog: the draft stays")

// purge removes the record of a draft if mayGo returns true for it; otherwise it returns errStays.
func (c *Catalog) purge(ctx context.Context, key string, mayGo func(draft) bool) error {
	entry, err := c.kv.Get(ctx, key)
	if err != nil {
		return err
	}
	var record draft
	if err := json.Unmarshal(entry.Value(), &record); err != nil || !mayGo(record) {
		return errors.Join(errStays, err)
	}
	return c.kv.Purge(ctx, key, jetstream.LastRevision(entry.Revision()))
}

// UseDraft marks a draft as used by a run, which keeps it for ever. The caller starts the run after
// that. tenant is that to which the agent belongs. A published revision needs no mark. Errors:
// ErrUnknownRevision if the draft was removed, stream.ErrUnavailable.
func (c *Catalog) UseDraft(ctx context.Context, tenant, name, revision string) error {
	agent := addressOf(tenant, name)
	for range maxPolls {
		err := c.markUsed(ctx, agent.draftKey(revision))
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrKeyNotFound) && !stream.IsConflict(err): // else the replica lags, or another run has marked it
			return fmt.Errorf("catalog: draft of %s: %w: %w", name, stream.ErrUnavailable, err)
		}
		published, err := c.storedPublications(ctx, agent)
		if err != nil || hasRevision(published, revision) {
			return err
		}
		if err := durations.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return &UnknownError{Agent: name, Revision: revision}
}

// markUsed marks the record of a draft, unless it is marked.
func (c *Catalog) markUsed(ctx context.Context, key string) error {
	entry, err := c.kv.Get(ctx, key)
	if err != nil {
		return err
	}
	var record draft
	if err := json.Unmarshal(entry.Value(), &record); err != nil || record.Used {
		return err
	}
	record.Used = true
	marked, err := json.Marshal(record)
	if err != nil {
		return err
	}
	_, err = c.kv.Update(ctx, key, marked, entry.Revision())
	return err
}

// Named returns a revision of an agent, published or a draft, for a run of a tenant. An unknown one
// is ErrUnknownRevision, after 2 s. It requires Watch.
func (c *Catalog) Named(ctx context.Context, tenant, name, revision string) (Published, error) {
	if !namePattern.MatchString(name) || !revisionPattern.MatchString(revision) { // they become parts of keys
		return Published{}, &UnknownError{Agent: name, Revision: revision}
	}
	owner := Referrer(tenant, revision)
	d, err := c.Revision(ctx, tenant, name, revision)
	if err != nil {
		return Published{}, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	isPublished := hasRevision(c.publications[addressOf(owner, name)], revision)
	return Published{Definition: d, Revision: revision, Tenant: owner, IsDraft: !isPublished}, nil
}

// hasRevision reports whether one of the publications is of a revision.
func hasRevision(list []Publication, revision string) bool {
	return slices.ContainsFunc(list, func(p Publication) bool { return p.Revision == revision })
}

// HasDraft reports whether a revision is a draft of an agent of a tenant; "" = of the platform. It
// requires Watch.
func (c *Catalog) HasDraft(tenant, name, revision string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.drafts[addressOf(tenant, name)][revision]
	return ok
}
