package announce

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// keyRetention is how long the board knows a key after the last announcement of it. So assertions of
// a worker that has stopped can be verified until they expire, and a restart of the only worker is
// no gap.
const keyRetention = 10 * time.Minute

// noteKeys remembers the keys of the present announcements, and forgets old ones. The caller holds
// mu.
func (b *Board) noteKeys() {
	now := b.now()
	for _, w := range b.workers {
		for _, k := range w.Keys {
			if w.receivedAt.After(b.keys[k.ID].seenAt) {
				b.keys[k.ID] = announcedKey{k, w.receivedAt}
			}
		}
	}
	maps.DeleteFunc(b.keys, func(_ string, k announcedKey) bool { return now.Sub(k.seenAt) > keyRetention })
}

// PublicKeys returns the public keys of the assertions of all workers, as JSON Web Keys, sorted by
// ID.
func (b *Board) PublicKeys() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := []json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(b.keys)) {
		if known := b.keys[id]; b.now().Sub(known.seenAt) <= keyRetention {
			raw, err := json.Marshal(known.key)
			if err != nil {
				continue // cannot fail: all members are strings
			}
			keys = append(keys, raw)
		}
	}
	return keys
}
