package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// ErrExceeded: a tenant has used what it may use today.
var ErrExceeded = errors.New("budget: the tenant has used its budget of the day")

// Ledger counts what tenants use in a day, UTC. Workers share it in a NATS bucket. It is safe for
// concurrent use; a nil Ledger has no budgets and counts nothing.
type Ledger struct {
	// Now is the clock that decides which day it is. It must not be changed while the ledger is
	// used.
	Now func() time.Time

	kv      jetstream.KeyValue
	all     Day
	tenants map[string]Day
}

// keptDays is how long the bucket keeps a day.
const keptDays = 7 * 24 * time.Hour

// Open opens the ledger. all is the budget of tenants without one of their own in the file, which
// may be nil. Without any budget it returns nil.
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
		Bucket: "budget", Description: "Perdure: what tenants have used, day by day", Storage: jetstream.FileStorage, TTL: keptDays,
	})
	return ledger, err
}

// AmountsOf makes amounts.
func AmountsOf(tokens int64, cost agents.Money) Amounts { return Amounts{tokens, amount(cost)} }

// Of returns the budget of a tenant.
func (l *Ledger) Of(tenant string) Day {
	if l == nil {
		return Day{}
	}
	if day, own := l.tenants[tenant]; own {
		return day
	}
	return l.all
}

// used is an entry of the bucket.
type used struct {
	Tokens int64        `json:"tokens"`
	Cost   agents.Money `json:"cost"`
	// Estimated is the part of the tokens that providers did not report.
	Estimated int64 `json:"estimated,omitempty"`
	// Calls are the last that were counted, the newest last: one that is told of again counts once.
	Calls []string `json:"calls"`
}

// keptCalls is how many an entry knows. A call is told of again within seconds or, by another
// worker, a minute.
const keptCalls = 256

// Check fails with ErrExceeded if the tenant has nothing left today. It finds an excess if its soft
// budget is used up, and what people have allowed beyond it; where allowed is nil nobody can be
// asked, and it finds none. Calls that are under way are not counted yet, so that the budget may be
// exceeded by these.
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

// tries bounds how often a count makes way for others: each time, one of them got through.
const tries = 1_000

// Use is what model calls have used.
type Use struct {
	Tokens int64
	Cost   agents.Money
	// Estimated is the part of Tokens that the provider did not report.
	Estimated int64
}

// Count adds what a call has used, once for each call, however often it is told.
func (l *Ledger) Count(ctx context.Context, tenant, call string, use Use) error {
	if l.Of(tenant) == (Day{}) || use.Tokens == 0 && use.Cost == 0 {
		return nil
	}
	key := key(l.today(), tenant)
	for range tries {
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
		if !isConflict(err) {
			return asUnavailable(err)
		}
	}
	return asUnavailable(errors.New("too many calls are counted at once"))
}

// isConflict reports whether another one has written since the entry was read.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

func (l *Ledger) read(ctx context.Context, key string) (u used, revision uint64, err error) {
	entry, err := l.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return used{}, 0, nil
	}
	if err != nil {
		return used{}, 0, asUnavailable(err)
	}
	if err := json.Unmarshal(entry.Value(), &u); err != nil {
		return used{}, 0, fmt.Errorf("budget: entry %s: %w", key, err)
	}
	return u, entry.Revision(), nil
}

func (l *Ledger) today() string { return l.Now().UTC().Format(time.DateOnly) }

// key is that of a tenant's day. A bucket takes no "~" in it.
func key(date, tenant string) string {
	return date + "." + strings.Replace(stream.Token(tenant), "~", "=", 1)
}

func asUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("budget: %w: %w", stream.ErrUnavailable, err)
}
