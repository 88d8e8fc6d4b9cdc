package usage

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// MaxDays is how many days the report has: the bucket keeps the entry of a day for so long after
// its last change.
const MaxDays = 400

// Ledger counts runs in a key-value bucket that all processes share: one entry for each tenant, day
// (UTC) and agent, changed by compare-and-swap. It is safe for concurrent use: runs that end at once
// share a write.
type Ledger struct {
	kv      jetstream.KeyValue
	writers [64]writer // by the hash of a key
}

// Open opens the ledger, and creates its bucket if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Ledger, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "usage", Description: "Perdure: usage of runs by tenant, day and agent", Storage: jetstream.FileStorage, TTL: MaxDays * 24 * time.Hour,
	})
	if err != nil {
		return nil, err
	}
	ledger := &Ledger{kv: kv}
	for i := range ledger.writers {
		ledger.writers[i] = writer{kv: kv, turn: make(chan struct{}, 1), waiting: map[string][]*pending{}}
	}
	return ledger, nil
}

// Count adds a run to the entry of its tenant, day and agent. Repeated counts of the same run count
// once. Errors: stream.ErrUnavailable.
func (l *Ledger) Count(ctx context.Context, r Run) error {
	key := key(r.Tenant, r.Ended.UTC().Format(time.DateOnly), r.Agent)
	return l.writers[hash(key)%uint32(len(l.writers))].count(ctx, key, r)
}

// key returns the key of an entry, or the filter of several: "" = every tenant or agent.
func key(tenant, day, agent string) string {
	return token(tenant) + "." + day + "." + token(agent)
}

// token returns the token of a name in a key; "" = the wildcard.
func token(name string) string {
	if name == "" {
		return "*"
	}
	return stream.KeyToken(name)
}

// hash returns a hash of a key.
func hash(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum32()
}
