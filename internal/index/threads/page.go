package threads

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/perdure/perdure/stream"
)

// Thread is a thread in a page of the API.
type Thread struct {
	ThreadID string `json:"threadId"`
	Agent    string `json:"agent"`
	// RunID is the last run that began; "" = a fork without a run.
	RunID  string        `json:"runId,omitempty"`
	Status stream.Status `json:"status"`
	// UpdatedAt is when the last run began or ended, or when the thread was forked.
	UpdatedAt time.Time `json:"updatedAt"`
	// Owner is the subject of the thread's owner; "" = an anonymous caller, or unknown. Shared tells
	// that the thread has shares.
	Owner  string `json:"owner,omitempty"`
	Shared bool   `json:"shared,omitempty"`
}

// Filter selects threads. A zero field selects all.
type Filter struct {
	Agent  string
	Status stream.Status
	// After and Before bound UpdatedAt; both exclude the bound itself, to the millisecond.
	After, Before time.Time
	// MayRead selects the threads whose access it accepts. It is called once for each distinct
	// access of a list. nil = all threads.
	MayRead func(stream.Access) bool
}

// matches reports whether the filter selects a thread.
func (f *Filter) matches(item *entry) bool {
	switch {
	case f.Agent != "" && f.Agent != item.agent, f.Status != "" && f.Status != item.status:
		return false
	case !f.After.IsZero() && item.updatedAt <= f.After.UnixMilli(), !f.Before.IsZero() && item.updatedAt >= f.Before.UnixMilli():
		return false
	}
	return true
}

// Page is a part of a tenant's threads, last updated first.
type Page struct {
	Items []Thread `json:"items"`
	// NextCursor is the cursor of the next page; "" = this is the last page.
	NextCursor string `json:"nextCursor,omitempty"`
}

// List returns up to limit threads of a tenant that f selects, after a page's cursor; "" = from the
// beginning. A thread that is updated between two pages moves to the beginning of the list, and
// later pages do not have it; every other thread is in exactly one page. Errors:
// stream.ErrInvalidCursor.
func (idx *Index) List(tenant string, f Filter, after string, limit int) (Page, error) {
	afterItem, err := parseCursor(after)
	if err != nil {
		return Page{}, err
	}
	idx.mu.RLock()
	defer idx.mu.RUnlock()
	p := Page{Items: []Thread{}}
	t := idx.tenants[stream.IndexToken(stream.Token(tenant))]
	if t == nil {
		return p, nil
	}
	from := len(t.sorted)
	if afterItem != nil {
		from, _ = slices.BinarySearchFunc(t.sorted, afterItem, (*entry).compare)
	}
	mayRead := f.memoized()
	var last *entry
	for _, item := range slices.Backward(t.sorted[:from]) {
		if !f.After.IsZero() && item.updatedAt <= f.After.UnixMilli() {
			break // all that follow are older
		}
		if !f.matches(item) || !mayRead(item.access) {
			continue
		}
		if len(p.Items) == limit {
			p.NextCursor = last.cursor()
			break
		}
		last = item
		p.Items = append(p.Items, item.shown())
	}
	return p, nil
}

// memoized returns MayRead with a memory.
func (f *Filter) memoized() func(Access) bool {
	if f.MayRead == nil {
		return func(Access) bool { return true }
	}
	known := map[Access]bool{}
	return func(a Access) bool {
		mayRead, ok := known[a]
		if !ok {
			mayRead = f.MayRead(a.Decode())
			known[a] = mayRead
		}
		return mayRead
	}
}

// shown returns the thread as a page has it.
func (i *entry) shown() Thread {
	owned := unique.Handle[access](i.access).Value()
	return Thread{
		ThreadID: i.id, Agent: i.agent, RunID: i.runID, Status: i.status, UpdatedAt: time.UnixMilli(i.updatedAt).UTC(),
		Owner: owned.owner, Shared: owned.shares != "",
	}
}

// cursor returns the cursor of the page after this thread: its time and token.
func (i *entry) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%012x.%s", i.updatedAt, i.token))
}

var cursorText = regexp.MustCompile(`^[0-9a-f]{12}\.=?[-_A-Za-z0-9]{1,64}$`)

// parseCursor returns an item with the place in a cursor: its time and token only. nil without an
// error = the beginning. Errors: stream.ErrInvalidCursor.
func parseCursor(cursor string) (*entry, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !cursorText.Match(text) {
		return nil, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	at, token, _ := strings.Cut(string(text), ".")
	ms, err := strconv.ParseInt(at, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return &entry{updatedAt: ms, token: token}, nil
}
