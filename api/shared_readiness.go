package api

import (
	"sync"
	"time"

	"github.com/perdure/perdure/api/systemroutes"
)

// readinessAge is how long the result of a readiness check is used. The check writes to the log, and
// probes need no credentials, so their number must not matter.
const readinessAge = time.Second

// readiness has the latest results of the readiness checks. Concurrent probes wait for one check. It
// is safe for concurrent use.
type readiness struct {
	mu      sync.Mutex
	checked time.Time
	latest  []systemroutes.Check
}

// results returns the latest results, or checks again if those are older than readinessAge. The
// caller must not change them.
func (r *readiness) results(check func() []systemroutes.Check) []systemroutes.Check {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest == nil || time.Since(r.checked) >= readinessAge {
		r.latest = check()
		r.checked = time.Now()
	}
	return r.latest
}
