package client

import (
	"net/url"
	"sync"
)

// maxAcknowledged bounds the threads of which a client remembers what the server has acknowledged.
const maxAcknowledged = 1000

// acknowledged remembers the latest cursor that the server has acknowledged something with, by thread: what the client
// asks about the thread next is answered when the log shows it.
type acknowledged struct {
	mu      sync.Mutex
	cursors map[string]string
}

// note takes in the cursor of an acknowledgement. The text order of cursors is the order of the log.
func (a *acknowledged) note(thread, cursor string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cursor <= a.cursors[thread] {
		return
	}
	if a.cursors == nil || len(a.cursors) >= maxAcknowledged {
		a.cursors = map[string]string{} // without a cursor a reader may come too early, and is told nothing wrong
	}
	a.cursors[thread] = cursor
}

// query has the parameter with which a request waits for what the thread has acknowledged, or the caller knows of.
func (a *acknowledged) query(thread, waitFor string) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := url.Values{}
	if cursor := max(waitFor, a.cursors[thread]); cursor != "" {
		q.Set("waitFor", cursor)
	}
	return q
}
