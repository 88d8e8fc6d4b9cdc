package quota

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

const (
	// burstSeconds is the size of a bucket: the requests of that many seconds may come at once.
	burstSeconds = 10
	// triggerBursts is the part of an hour's firings that requests may trigger at once: one of
	// triggerBursts.
	triggerBursts = 60
	// maxBuckets bounds the buckets of an API process. The bucket that was idle longest is dropped,
	// and is full when its caller returns.
	maxBuckets = 16_384
)

// Rates are token buckets for requests: of tenants, of subjects, and of the addresses of callers
// without valid credentials. Each API process has its own, and each worker has others for the messages of
// sources in NATS. They are safe for concurrent use.
type Rates struct {
	table *Table

	mu      sync.Mutex // makes taking from several buckets one step
	buckets *lru.Cache[bucketKey, *rate.Limiter]
}

// bucketKey identifies a bucket. subject is "" for the bucket of a tenant; peer is set for callers
// without credentials only.
type bucketKey struct {
	name            Name
	tenant, subject string
	peer            netip.Prefix
}

// NewRates returns full buckets with the rates of a table.
func NewRates(table *Table) *Rates {
	buckets, _ := lru.New[bucketKey, *rate.Limiter](maxBuckets) // fails only if maxBuckets is not positive
	return &Rates{table: table, buckets: buckets}
}

// RateError tells that a bucket is empty.
type RateError struct {
	// Policy is the name of the bucket.
	Policy Name
	// Limit is the rate, per second or in the unit of its name. Burst is the size of the bucket,
	// and Window the time in which it fills.
	Limit  Limit
	Burst  int
	Window time.Duration
	// Wait is how long the caller has to wait.
	Wait time.Duration
}

// Error implements error.
func (e *RateError) Error() string {
	return fmt.Sprintf("quota: %s is %d, and %d at once", e.Policy, e.Limit, e.Burst)
}

// Take counts a request of a caller; writes tells that it writes or starts a run. A *RateError
// means that a bucket is empty; then the request was not counted.
func (r *Rates) Take(p auth.Principal, writes bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := []bucketKey{{name: SubjectRequests, tenant: p.Tenant, subject: p.Subject}, {name: Requests, tenant: p.Tenant}}
	if writes {
		keys = append(keys, bucketKey{name: SubjectWrites, tenant: p.Tenant, subject: p.Subject}, bucketKey{name: Writes, tenant: p.Tenant})
	}
	now := time.Now()
	var taken []*rate.Reservation
	for _, key := range keys {
		limit := r.table.Of(p.Tenant, key.name)
		reservation, err := r.reserve(key, limit, now)
		if err != nil {
			for _, t := range taken {
				t.CancelAt(now)
			}
			return err
		}
		if reservation != nil {
			taken = append(taken, reservation)
		}
	}
	return nil
}

// TakeTrigger counts a request that fires a schedule of a tenant. A *RateError means that such
// requests have fired its schedules as often as Firings allows.
func (r *Rates) TakeTrigger(tenant string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.reserve(bucketKey{name: Firings, tenant: tenant}, r.table.Of(tenant, Firings), time.Now())
	return err
}

// TakeRefusal counts a request without valid credentials by its peer. IPv6 addresses with the same
// first 64 bits are one peer. A *RateError means that the peer has sent too many of them.
func (r *Rates) TakeRefusal(peer netip.Addr) error {
	bits := 32
	if peer = peer.Unmap(); peer.Is6() {
		bits = 64
	}
	prefix, _ := peer.WithZone("").Prefix(bits) // the zero prefix for an invalid address, which all of them share
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.reserve(bucketKey{name: Unauthenticated, peer: prefix}, r.table.Of("", Unauthenticated), time.Now())
	return err
}

// reserve takes a token from a bucket; nil without an error = the bucket has no limit. The caller
// holds mu.
func (r *Rates) reserve(key bucketKey, limit Limit, now time.Time) (*rate.Reservation, error) {
	if limit == Unlimited {
		return nil, nil
	}
	perSecond, burst, window := rate.Limit(limit), int(limit)*burstSeconds, burstSeconds*time.Second
	if key.name == Firings {
		perSecond, burst, window = rate.Limit(float64(limit)/time.Hour.Seconds()), max(1, int(limit)/triggerBursts), time.Hour/triggerBursts
	}
	bucket, ok := r.buckets.Get(key)
	if !ok {
		bucket = rate.NewLimiter(perSecond, burst)
		r.buckets.Add(key, bucket)
	} else if bucket.Limit() != perSecond { // the file has changed
		bucket.SetLimitAt(now, perSecond)
		bucket.SetBurstAt(now, burst)
	}
	reservation := bucket.ReserveN(now, 1)
	if wait := reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
		telemetry.QuotaRefused(r.table.label(key.tenant), string(key.name))
		return nil, &RateError{Policy: key.name, Limit: limit, Burst: burst, Window: window, Wait: wait}
	}
	return reservation, nil
}
