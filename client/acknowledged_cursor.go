package client

import (
	"net/url"
	"sync"
)

// maxAcknowledgedCursors bounds the threads whose cursors a client remembers.
const maxAcknowledgedCursors = 1000

// acknowledgedCursors gives a client read-your-writes consistency. It has, by thread, the latest
// cursor that the server has returned for a decision. The next request about the thread passes the
// cursor, and the server answers when the log has reached it. It is safe for concurrent use.
type acknowledgedCursors struct {
	mu      sync.Mutex
	cursors map[string]string
}

// note stores the cursor of an acknowledgement, unless it is older than the stored one: cursors
// sort as text in the order of the log.
func (a *acknowledgedCursors) note(thread, cursor string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cursor <= a.cursors[thread] {
		return
	}
	if a.cursors == nil || len(a.cursors) >= maxAcknowledgedCursors {
		a.cursors = map[string]string{} // forgetting cursors is harmless: a reader may see a state from before its decision
	}
	a.cursors[thread] = cursor
}

// query returns the parameter waitFor of a request: the later of the stored cursor and waitFor.
func (a *acknowledgedCursors) query(thread, waitFor string) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := url.Values{}
	if cursor := max(waitFor, a.cursors[thread]); cursor != "" {
		q.Set("waitFor", cursor)
	}
	return q
}

// addTo adds the parameter waitFor to the query of a list: the stored cursor of a thread, or "" for
// the latest of all threads.
func (a *acknowledgedCursors) addTo(q url.Values, thread string) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	latest := a.cursors[thread]
	if thread == "" {
		for _, cursor := range a.cursors {
			latest = max(latest, cursor)
		}
	}
	if latest != "" {
		q.Set("waitFor", latest)
	}
	return q
}
