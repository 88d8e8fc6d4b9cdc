package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// ErrExceeded: the tenant has used its hard budget of the day.
var ErrExceeded = errors.New("budget: the tenant has used its budget for the day")

// Ledger counts what each tenant uses in a day (UTC), in a key-value bucket that all workers share:
// one entry for each day and tenant, changed by compare-and-swap. It is safe for concurrent use. A
// nil Ledger has no budgets and counts nothing.
type Ledger struct {
	// Now is the clock that decides the day. Tests replace it before they use the ledger.
	Now func() time.Time

	kv jetstream.KeyValue
	// all is the budget of tenants that have none of their own.
	all     Day
	tenants map[string]Day
}

// keptDays is how long the bucket keeps the entry of a day after its last change.
const keptDays = 7 * 24 * time.Hour

// Open opens the ledger, and creates its bucket if it is missing. all is the budget of tenants
// without one of their own in f, which may be nil. If there is no budget at all, Open returns nil
// without an error.
func Open(ctx context.Context, l *stream.Log, all Day, f *File) (*Ledger, error) {
	ledger := &Ledger{all: all, Now: time.Now}
	if f != nil {
		ledger.tenants = f.Tenants
	}
	if all == (Day{}) && len(ledger.tenants) == 0 {
		return nil, nil
	}
	var err error
	ledger.kv, err = l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "budget", Description: "Perdure: usage of tenants by day", Storage: jetstream.FileStorage, TTL: keptDays,
	})
	return ledger, err
}

// AmountsOf returns amounts of tokens and money.
func AmountsOf(tokens int64, cost agents.Money) Amounts { return Amounts{tokens, amount(cost)} }

// Of returns the budget of a tenant; the zero Day = no budget.
func (l *Ledger) Of(tenant string) Day {
	if l == nil {
		return Day{}
	}
	if day, isListed := l.tenants[tenant]; isListed {
		return day
	}
	return l.all
}

// usage is an entry of the bucket: what a tenant has used on a day.
type usage struct {
	Tokens int64        `json:"tokens"`
	Cost   agents.Money `json:"cost"`
	// Estimated is the part of the tokens that providers did not report.
	Estimated int64 `json:"estimated,omitempty"`
	// Calls are the IDs of the calls that were counted last, oldest first. A call in this list is
	// not counted again.
	Calls []string `json:"calls"`
}

// keptCalls bounds Calls. An activity that is retried counts its call again within seconds; after
// the death of a worker, within about a minute.
const keptCalls = 256

// Check compares what a tenant has used today with its budget. It fails with ErrExceeded if the
// hard budget is used up. It returns an Excess if the soft budget is used up, and also what
// approvers have allowed beyond it. If allowed is nil, approvers cannot be asked, and the soft
// budget is ignored. Calls in progress are not counted yet, so they may exceed the budget.
func (l *Ledger) Check(ctx context.Context, tenant string, allowed *Allowed) (*Excess, error) {
	day := l.Of(tenant)
	if day == (Day{}) {
		return nil, nil
	}
	date := l.today()
	u, _, err := l.read(ctx, key(date, tenant))
	switch {
	case err != nil:
		return nil, err
	case day.Tokens > 0 && u.Tokens >= day.Tokens, day.Cost > 0 && u.Cost >= agents.Money(day.Cost):
		return nil, ErrExceeded
	case allowed == nil:
		return nil, nil
	}
	return day.excess(date, u, *allowed), nil
}

// maxTries bounds the compare-and-swaps of one Count. Each conflict means that another call was
// counted, so Count makes progress across all workers.
const maxTries = 1_000

// Use is the usage of one model call.
type Use struct {
	Tokens int64
	Cost   agents.Money
	// Estimated is the part of Tokens that the provider did not report.
	Estimated int64
}

// Count adds the usage of a call to the tenant's entry of today. call identifies the call: repeated
// counts of the same call count once. Errors: stream.ErrUnavailable.
func (l *Ledger) Count(ctx context.Context, tenant, call string, use Use) error {
	if l.Of(tenant) == (Day{}) || use.Tokens == 0 && use.Cost == 0 {
		return nil
	}
	key := key(l.today(), tenant)
	for range maxTries {
		u, revision, err := l.read(ctx, key)
		if err != nil || slices.Contains(u.Calls, call) {
			return err
		}
		u.Tokens, u.Cost, u.Estimated = u.Tokens+use.Tokens, u.Cost+use.Cost, u.Estimated+use.Estimated
		u.Calls = append(u.Calls[max(0, len(u.Calls)+1-keptCalls):], call)
		body, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("budget: %w", err)
		}
		if revision == 0 {
			_, err = l.kv.Create(ctx, key, body)
		} else {
			_, err = l.kv.Update(ctx, key, body, revision)
		}
		if !stream.IsConflict(err) {
			return asUnavailable(err)
		}
	}
	return asUnavailable(errors.New("too many calls are counted at once"))
}

// read returns the entry of a key, and its revision; revision 0 = there is no entry.
func (l *Ledger) read(ctx context.Context, key string) (u usage, revision uint64, err error) {
	entry, err := l.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return usage{}, 0, nil
	}
	if err != nil {
		return usage{}, 0, asUnavailable(err)
	}
	if err := json.Unmarshal(entry.Value(), &u); err != nil {
		return usage{}, 0, fmt.Errorf("budget: entry %s: %w", key, err)
	}
	return u, entry.Revision(), nil
}

// today returns the date of today in UTC, as of [time.DateOnly].
func (l *Ledger) today() string { return l.Now().UTC().Format(time.DateOnly) }

// key returns the key of a tenant's day. Keys of a bucket must not contain "~", which begins the
// tokens of long IDs (stream.Token).
func key(date, tenant string) string {
	return date + "." + stream.KeyToken(tenant)
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable, so that activities retry. It
// returns nil for nil.
func asUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("budget: %w: %w", stream.ErrUnavailable, err)
}
