package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
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

// List returns up to limit open interrupts of a tenant that q selects, after a page's cursor; "" =
// from the beginning. The list may change between pages: an interrupt that is open during the whole
// iteration is in exactly one page. Errors: stream.ErrInvalidCursor.
func (x *Index) List(tenant string, q Filter, after string, limit int) (Page, error) {
	behind, err := placeAfter(after)
	if err != nil {
		return Page{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := Page{Items: []json.RawMessage{}, Events: Cursor{revision: x.revision, at: time.Now(), epoch: x.store.epoch}}
	items := x.pending[token(tenant)]
	at, found := slices.BinarySearchFunc(items, behind, byPlace)
	if found {
		at++
	}
	last := ""
	for _, it := range items[at:] {
		if !q.picks(&it.facts) {
			continue
		}
		if len(p.Items) == limit {
			p.Next = pageCursor(last)
			break
		}
		p.Items, last = append(p.Items, it.raw), it.place
	}
	return p, nil
}

// Forget removes an interrupt from the pending ones after the API has found that its thread does
// not wait for it. It does nothing if the index does not have the interrupt.
func (x *Index) Forget(ctx context.Context, tenant, thread, id string) error {
	x.mu.RLock()
	at := slices.IndexFunc(x.pending[token(tenant)], func(it *item) bool {
		return it.facts.thread == thread && strings.HasSuffix(it.place, "."+id)
	})
	place := ""
	if at >= 0 {
		place = x.pending[token(tenant)][at].place
	}
	x.mu.RUnlock()
	if at < 0 {
		return nil
	}
	return x.store.settle(ctx, pendingPrefix+token(tenant)+"."+place)
}
