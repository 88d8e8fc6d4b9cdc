package filewatch

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
)

// Change is a content of a file that a process has taken over. It has names and a digest, never the
// content: the file may have secrets.
type Change struct {
	// Digest is the SHA-256 of the content, in hex.
	Digest string
	// Added, Removed and Changed are the names of entries that differ from the content before, sorted.
	// The first content has none.
	Added, Removed, Changed []string
}

// DigestOf returns the Digest of a content.
func DigestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Changes tells an observer which contents a process has taken over. The zero value is ready for use.
// It is safe for concurrent use.
type Changes struct {
	mu       sync.Mutex
	digest   string
	entries  map[string]string
	observer func(Change)
}

// Observe calls observer with the content in use, if there is one, and with each later one. There is one
// observer; it must not call the methods of c.
func (c *Changes) Observe(observer func(Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observer = observer; c.digest != "" {
		observer(Change{Digest: c.digest})
	}
}

// Take notes a content that is in use from now on: its digest, and its entries by name. Two values of an
// entry are equal if they mean the same.
func (c *Changes) Take(digest string, entries map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change := Change{Digest: digest}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if before, ok := c.entries[name]; !ok {
			change.Added = append(change.Added, name)
		} else if before != entries[name] {
			change.Changed = append(change.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.entries)) {
		if _, ok := entries[name]; !ok {
			change.Removed = append(change.Removed, name)
		}
	}
	c.digest, c.entries = digest, entries
	if c.observer != nil {
		c.observer(change)
	}
}
