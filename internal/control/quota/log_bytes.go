package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// recountInterval is the shortest time between two exact counts of a tenant's bytes.
	recountInterval = 10 * time.Minute
	// countRetry is the pause after a count that failed.
	countRetry = 5 * time.Second
	// maxRecounts bounds the tenants that wait for a count.
	maxRecounts = 100
)

// ByteCounter counts the bytes of tenants in the log. *stream.Follower implements it.
type ByteCounter interface {
	// Bytes returns the bytes of a tenant; false before the first CountBytes. It may miss removals.
	Bytes(tenant string) (int64, bool)
	// CountBytes counts the bytes of a tenant exactly, or the first time those of all tenants.
	CountBytes(ctx context.Context, tenant string) error
}

// ByteMeter is the Count of LogBytes. A ByteCounter does not see removals, so the tenant that is
// near its quota is counted again, at most once in recountInterval. It is safe for concurrent use.
type ByteMeter struct {
	table   *Table
	counter ByteCounter
	logger  *slog.Logger
	recount chan string // tenants near their quota

	mu      sync.Mutex
	counted map[string]time.Time // when a tenant was counted again last
}

// NewByteMeter returns a meter. The caller calls Run.
func NewByteMeter(table *Table, counter ByteCounter, logger *slog.Logger) *ByteMeter {
	return &ByteMeter{table: table, counter: counter, logger: logger, recount: make(chan string, maxRecounts), counted: map[string]time.Time{}}
}

// Count returns the bytes of a tenant. Before the first exact count these are only the bytes that were
// written since the start, so the quota refuses nothing by mistake.
func (m *ByteMeter) Count(_ context.Context, tenant string) (int64, error) {
	used, _ := m.counter.Bytes(tenant)
	if limit := m.table.Of(tenant, LogBytes); limit != Unlimited && used*100 >= int64(limit)*warnPercent && m.mayRecount(tenant) {
		select {
		case m.recount <- tenant:
		default: // a later Count asks again
		}
	}
	return used, nil
}

// mayRecount reports whether a tenant may be counted again now, and notes that it is.
func (m *ByteMeter) mayRecount(tenant string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.counted[tenant]) < recountInterval {
		return false
	}
	for old, at := range m.counted { // few tenants are near their quota
		if time.Since(at) >= recountInterval {
			delete(m.counted, old)
		}
	}
	m.counted[tenant] = time.Now()
	return true
}

// Run counts the bytes of all tenants, and later those of tenants near their quota, until ctx ends.
func (m *ByteMeter) Run(ctx context.Context) {
	for tenant := ""; ; {
		for {
			err := m.counter.CountBytes(ctx, tenant)
			if err == nil || ctx.Err() != nil {
				break
			}
			m.logger.WarnContext(ctx, "the bytes of tenants in the log cannot be counted, the API tries again", "error", err)
			select {
			case <-time.After(countRetry):
			case <-ctx.Done():
			}
		}
		select {
		case tenant = <-m.recount:
		case <-ctx.Done():
			return
		}
	}
}
