package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Page is a part of what is pending, the oldest first.
type Page struct {
	Items []json.RawMessage // approvals
	// Next is the cursor of the next page; "" = there is none.
	Next string
	// Events is a cursor of the feed: what it has behind that, and the page, leave nothing out.
	Events Cursor
}

// List returns up to limit approvals of a tenant that the filter picks, behind a page's cursor; ""
// is the beginning. It fails with stream.ErrInvalidCursor. Pages are those of a list that changes
// meanwhile: what is pending all the while is in one of them.
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

// Forget takes an approval out of what is pending that turned out not to be: its thread does not
// wait for it any more. What is not listed is left alone.
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
