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
	// Title is set by hand or of the first message of a user; "" = none.
	Title string `json:"title,omitempty"`
	// Metadata are set by callers. Readers must not change them.
	Metadata map[string]string `json:"metadata,omitempty"`
	Agent    string            `json:"agent"`
	// RunID is the last run that began; "" = a fork without a run.
	RunID  string        `json:"runId,omitempty"`
	Status stream.Status `json:"status"`
	// WaitingFor has the kinds of the interrupts with which the last run ended.
	WaitingFor []stream.WaitKind `json:"waitingFor,omitempty"`
	// CreatedAt is when the thread began; zero = unknown.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// UpdatedAt is when the last run began or ended, or when the thread was forked.
	UpdatedAt time.Time `json:"updatedAt"`
	// Owner is the subject of the thread's owner; "" = an anonymous caller, or unknown. Shared tells
	// that the thread has shares.
	Owner  string `json:"owner,omitempty"`
	Shared bool   `json:"shared,omitempty"`
	// Retrying tells why the active run makes no progress; nil = no activity is retried.
	Retrying *Retrying `json:"retrying,omitempty"`
	// Tokens and Cost are of all models of the ended runs. Tokens is nil if they called no model, Cost
	// if no model has a price.
	Tokens *Tokens `json:"tokens,omitempty"`
	Cost   *Cost   `json:"cost,omitempty"`
}

// Retrying is a failed attempt of an activity that is attempted again.
type Retrying struct {
	Activity string    `json:"activity"`
	Name     string    `json:"name,omitempty"`
	Attempt  int       `json:"attempt"`
	Error    string    `json:"error"`
	Since    time.Time `json:"since"`
}

// RetryingOf returns what a page shows of a retry; nil for nil.
func RetryingOf(r *stream.Retrying) *Retrying {
	if r == nil {
		return nil
	}
	return &Retrying{r.Activity, r.Name, r.Attempt, r.Error, r.Since}
}

// Tokens are numbers of tokens.
type Tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// Cost is an amount of money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency,omitempty"`
}

// Filter selects threads. A zero field selects all.
type Filter struct {
	Agent  string
	Status stream.Status
	// Text is in the title, or in a name or a value of the metadata, in whatever case.
	Text string
	// Owner is the subject of the owner.
	Owner string
	// WaitingFor is one of the kinds that the thread waits for.
	WaitingFor stream.WaitKind
	// Retrying selects the threads whose active run is retrying.
	Retrying bool
	// After and Before bound UpdatedAt, CreatedAfter and CreatedBefore bound CreatedAt. All exclude
	// the bound itself, to the millisecond.
	After, Before               time.Time
	CreatedAfter, CreatedBefore time.Time
	// MinCost and MaxCost bound the cost of the ended runs, in millionths of the currency. Both include
	// the bound, and select no thread of which no cost is known. nil = no bound.
	MinCost, MaxCost *int64
	// MayRead selects the threads whose access it accepts. It is called once for each distinct
	// access of a list. nil = all threads.
	MayRead func(stream.Access) bool
}

// matches reports whether the filter selects a thread. f.Text must be folded.
func (f *Filter) matches(item *entry) bool {
	switch {
	case f.Agent != "" && f.Agent != item.agent, f.Status != "" && f.Status != item.status:
		return false
	case !isBetween(item.updatedAt, f.After, f.Before), !isBetween(item.createdAt, f.CreatedAfter, f.CreatedBefore):
		return false
	case f.WaitingFor != "" && !slices.Contains(item.waitingFor, f.WaitingFor):
		return false
	case f.Retrying && item.retrying == nil, !f.matchesCost(item.usage):
		return false
	case f.Owner != "" && unique.Handle[access](item.access).Value().owner != f.Owner:
		return false
	}
	return f.Text == "" || strings.Contains(item.text, f.Text)
}

// matchesCost reports whether the cost of a usage is within the bounds.
func (f *Filter) matchesCost(u stream.ThreadUsage) bool {
	if f.MinCost == nil && f.MaxCost == nil {
		return true
	}
	return CostOf(u) != nil && (f.MinCost == nil || u.Cost >= *f.MinCost) && (f.MaxCost == nil || u.Cost <= *f.MaxCost)
}

// isBetween reports whether a time in milliseconds is between two bounds; zero = no bound.
func isBetween(at int64, after, before time.Time) bool {
	return (after.IsZero() || at > after.UnixMilli()) && (before.IsZero() || at < before.UnixMilli())
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
	f.Text = fold(f.Text)
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
	shown := Thread{
		ThreadID: i.id, Title: i.title, Metadata: i.metadata, Agent: i.agent, RunID: i.runID, Status: i.status, WaitingFor: i.waitingFor,
		UpdatedAt: time.UnixMilli(i.updatedAt).UTC(), Owner: owned.owner, Shared: owned.shares != "", Retrying: RetryingOf(i.retrying), Cost: CostOf(i.usage),
	}
	if i.createdAt > 0 {
		shown.CreatedAt = time.UnixMilli(i.createdAt).UTC()
	}
	if i.usage.TotalTokens > 0 {
		shown.Tokens = &Tokens{i.usage.InputTokens, i.usage.OutputTokens, i.usage.TotalTokens}
	}
	return shown
}

// CostOf returns the cost of a thread; nil = no model has a price.
func CostOf(u stream.ThreadUsage) *Cost {
	if u.Cost == 0 && u.Currency == "" {
		return nil
	}
	return &Cost{float64(u.Cost) / 1e6, u.Currency}
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
