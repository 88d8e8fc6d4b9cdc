package events

// HoldScans keeps scans from reading until release is called.
func (r *Router) HoldScans() (release func()) {
	r.reading <- struct{}{}
	return func() { <-r.reading }
}

// Scanned returns the number of waits of a tenant that share the next scan of an event.
func (r *Router) Scanned(tenant, event string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.scans[eventName{tenant, event}]; s != nil {
		return len(s.waits)
	}
	return 0
}
