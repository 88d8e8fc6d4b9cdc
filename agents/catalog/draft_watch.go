package catalog

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/index/watch"
)

// draftLoading collects the records of drafts during a load.
type draftLoading struct {
	catalog *Catalog
	drafts  map[address]map[string]draft
}

// newDraftLoading begins a load, see [watch.Receiver].
func (c *Catalog) newDraftLoading() watch.Loading {
	return &draftLoading{c, map[address]map[string]draft{}}
}

// Take implements [watch.Loading].
func (l *draftLoading) Take(entry jetstream.KeyValueEntry) { updateDraft(l.drafts, entry) }

// Done implements [watch.Loading]: it replaces the records in memory.
func (l *draftLoading) Done(context.Context, uint64) {
	l.catalog.mu.Lock()
	l.catalog.drafts = l.drafts
	l.catalog.mu.Unlock()
	l.catalog.notifyWaiters()
}

// applyDraft applies a change of a record, see [watch.Receiver].
func (c *Catalog) applyDraft(_ context.Context, change jetstream.KeyValueEntry) {
	c.mu.Lock()
	updateDraft(c.drafts, change)
	c.mu.Unlock()
	c.notifyWaiters()
}

// updateDraft stores the record of an entry, or removes that of a deleted key. An invalid entry
// counts as none.
func updateDraft(drafts map[address]map[string]draft, entry jetstream.KeyValueEntry) {
	agent, revision, ok := parseDraftKey(entry.Key())
	if !ok {
		return
	}
	delete(drafts[agent], revision)
	var record draft
	if entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(entry.Value(), &record) != nil || !agent.isOf(record.Tenant) {
		return
	}
	if drafts[agent] == nil {
		drafts[agent] = map[string]draft{}
	}
	drafts[agent][revision] = record
}
