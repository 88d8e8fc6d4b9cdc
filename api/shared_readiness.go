package api

import (
	"sync"
	"time"
)

// readinessAge is how long the result of a readiness check is used. The check writes to the log, and
// probes need no credentials, so their number must not matter.
const readinessAge = time.Second

// readiness is the latest result of the readiness check. Concurrent probes wait for one check. It is
// safe for concurrent use.
type readiness struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

// result returns the result of the latest check, or checks again if that is older than readinessAge.
func (r *readiness) result(check func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) >= readinessAge {
		r.err = check()
		r.checked = time.Now()
	}
	return r.err
}
