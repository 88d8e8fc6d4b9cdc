package client

import (
	"net/url"
	"sync"
)

// maxAcknowledged bounds the threads whose acknowledgements a client remembers.
const maxAcknowledged = 1000

// acknowledged has the latest cursor that the server has acknowledged a request with, by thread.
// The next request about the thread waits until the log shows its effect.
type acknowledged struct {
	mu      sync.Mutex
	cursors map[string]string
}

// note stores the cursor of an acknowledgement. The text order of cursors is the order of the log.
func (a *acknowledged) note(thread, cursor string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cursor <= a.cursors[thread] {
		return
	}
	if a.cursors == nil || len(a.cursors) >= maxAcknowledged {
		a.cursors = map[string]string{} // without cursors, readers may be early, which is not wrong
	}
	a.cursors[thread] = cursor
}

// query returns the parameter with which a request waits for the acknowledgement, or for waitFor.
func (a *acknowledged) query(thread, waitFor string) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := url.Values{}
	if cursor := max(waitFor, a.cursors[thread]); cursor != "" {
		q.Set("waitFor", cursor)
	}
	return q
}
