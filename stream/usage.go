package stream

import "sync"

// usage is the bytes that tenants have in the log, by the tenant's token: their records with subjects
// and headers, and their blobs. Checkpoints do not count.
//
// A Follower adds the records that it delivers. JetStream tells neither the bytes of a subject nor
// what was removed, so Follower.CountBytes counts what was there before, and counts a tenant again
// after removals. A blob that two new records refer to is counted twice until then.
type usage struct {
	mu        sync.Mutex
	isCounted bool             // counted has what was there when the follower started
	counted   map[string]int64 // by Follower.CountBytes
	added     map[string]int64 // since counted; during a count, since its beginning
	before    map[string]int64 // during a count, what was added before it
}

// add counts a record that was delivered.
func (u *usage) add(tenant string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added[tenant] += size
}
