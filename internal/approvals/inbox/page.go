package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// Page is a part of the open interrupts of a tenant, oldest first.
type Page struct {
	Items []json.RawMessage // each an Approval in JSON
	// Next is the cursor of the next page; "" = this is the last page.
	Next string
	// Events is a cursor of the feed. The page and the events after this cursor together miss
	// nothing.
	Events Cursor
}

// List returns up to limit open interrupts of a tenant that f selects, after a page's cursor; "" =
// from the beginning. The list may change between pages: an interrupt that is open during the whole
// iteration is in exactly one page. f.Reader may take its time: List calls it without a lock.
// Errors: stream.ErrInvalidCursor.
func (idx *Index) List(tenant string, f Filter, after string, limit int) (Page, error) {
	afterKey, err := parsePageCursor(after)
	if err != nil {
		return Page{}, err
	}
	idx.mu.RLock()
	p := Page{Items: []json.RawMessage{}, Events: Cursor{revision: idx.revision, at: time.Now(), epoch: idx.store.epoch}}
	items := idx.pending[stream.KeyToken(tenant)]
	idx.mu.RUnlock()
	at, found := slices.BinarySearchFunc(items, afterKey, compareSortKey)
	if found {
		at++
	}
	last := ""
	for _, item := range items[at:] {
		if !f.matches(&item.properties) {
			continue
		}
		if len(p.Items) == limit {
			p.Next = pageCursor(last)
			break
		}
		p.Items, last = append(p.Items, item.raw), item.sortKey
	}
	return p, nil
}

// Forget removes an interrupt from the pending ones after the API has found that its thread does
// not wait for it. It does nothing if the index does not have the interrupt.
func (idx *Index) Forget(ctx context.Context, tenant, thread, id string) error {
	idx.mu.RLock()
	at := slices.IndexFunc(idx.pending[stream.KeyToken(tenant)], func(item *openInterrupt) bool {
		return item.properties.thread == thread && strings.HasSuffix(item.sortKey, "."+id)
	})
	sortKey := ""
	if at >= 0 {
		sortKey = idx.pending[stream.KeyToken(tenant)][at].sortKey
	}
	idx.mu.RUnlock()
	if at < 0 {
		return nil
	}
	return idx.store.purgePending(ctx, pendingPrefix+stream.KeyToken(tenant)+"."+sortKey)
}
