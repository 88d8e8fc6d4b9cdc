package threads

import (
	"slices"

	"github.com/perdure/perdure/stream"
)

// Tenants returns the IDs of the tenants that have threads, in no order.
func (idx *Index) Tenants() []string {
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	all := make([]string, 0, len(idx.tenants))
	for _, t := range idx.tenants {
		if t.id != "" {
			all = append(all, t.id)
		}
	}
	return all
}

// Oldest returns up to limit threads of a tenant in the order of their last update, the oldest
// first, after the cursor of an earlier call; "" = from the beginning. next is the cursor after
// them; "" = there are no further threads. A thread that is updated between two calls moves to the
// end, so later calls return it again: calls until the end miss no thread. Errors:
// stream.ErrInvalidCursor.
func (idx *Index) Oldest(tenant, after string, limit int) (page []Thread, next string, err error) {
	afterItem, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	t := idx.tenants[stream.IndexToken(stream.Token(tenant))]
	if t == nil {
		return nil, "", nil
	}
	from := 0
	if afterItem != nil {
		at, found := slices.BinarySearchFunc(t.sorted, afterItem, (*entry).compare)
		if found {
			at++
		}
		from = at
	}
	to := min(len(t.sorted), from+limit)
	for _, item := range t.sorted[from:to] {
		page = append(page, item.shown())
	}
	if to > from && to < len(t.sorted) {
		next = t.sorted[to-1].cursor()
	}
	return page, next, nil
}

// Unfinished returns the threads whose purge has begun and not ended, in no order: their purge is
// active, or was interrupted.
func (idx *Index) Unfinished() []stream.Thread {
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	var all []stream.Thread
	for _, t := range idx.tenants {
		for _, id := range t.unfinished {
			all = append(all, stream.Thread{Tenant: t.id, ID: id})
		}
	}
	return all
}
