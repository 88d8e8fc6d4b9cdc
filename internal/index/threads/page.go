package threads

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// Thread is a thread in a list.
type Thread struct {
	ThreadID string `json:"threadId"`
	Agent    string `json:"agent"`
	// RunID is the last run that began; there is none in a fork that nobody has used yet.
	RunID  string        `json:"runId,omitempty"`
	Status stream.Status `json:"status"`
	// UpdatedAt is when the last run began or ended, or the thread was forked.
	UpdatedAt time.Time `json:"updatedAt"`
}

// Filter says which threads are wanted; a zero member excludes none.
type Filter struct {
	Agent  string
	Status stream.Status
	// After and Before bound when something happened last, both excluded.
	After, Before time.Time
}

func (f *Filter) picks(it *item) bool {
	switch {
	case f.Agent != "" && f.Agent != it.agent, f.Status != "" && f.Status != it.state:
		return false
	case !f.After.IsZero() && it.at <= f.After.UnixMilli(), !f.Before.IsZero() && it.at >= f.Before.UnixMilli():
		return false
	}
	return true
}

// Page is a part of the threads of a tenant, the newest first.
type Page struct {
	Items []Thread `json:"items"`
	// NextCursor is where the next page begins; "" = there is none.
	NextCursor string `json:"nextCursor,omitempty"`
}

// List returns up to limit threads of a tenant that the filter picks, behind a page's cursor; "" is
// the beginning. It fails with stream.ErrInvalidCursor. A thread to which something happens between
// two pages moves to the beginning of the list; all others are in one page each.
func (x *Index) List(tenant string, f Filter, after string, limit int) (Page, error) {
	behind, err := parseCursor(after)
	if err != nil {
		return Page{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := Page{Items: []Thread{}}
	t := x.tenants[stream.IndexToken(stream.Token(tenant))]
	if t == nil {
		return p, nil
	}
	from := len(t.sorted)
	if behind != nil {
		from, _ = slices.BinarySearchFunc(t.sorted, behind, (*item).compare)
	}
	var last *item
	for _, it := range slices.Backward(t.sorted[:from]) {
		if !f.After.IsZero() && it.at <= f.After.UnixMilli() {
			break // as all that follow
		}
		if !f.picks(it) {
			continue
		}
		if len(p.Items) == limit {
			p.NextCursor = last.cursor()
			break
		}
		last = it
		p.Items = append(p.Items, Thread{
			ThreadID: it.id, Agent: it.agent, RunID: it.runID, Status: it.state, UpdatedAt: time.UnixMilli(it.at).UTC(),
		})
	}
	return p, nil
}

// A page's cursor is the place of its last thread.

func (i *item) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%012x.%s", i.at, i.token))
}

var cursorText = regexp.MustCompile(`^[0-9a-f]{12}\.=?[-_A-Za-z0-9]{1,64}$`)

// parseCursor returns the place behind which a page begins; nil = the beginning.
func parseCursor(cursor string) (*item, error) {
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
	return &item{at: ms, token: token}, nil
}
