// Package filewatch tells when the content of files changes. It reads the files at intervals: that
// works with every file system, with files that are replaced by a rename, and with the symbolic
// links of Kubernetes volumes, and costs little for small files.
package filewatch

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"time"
)

// Interval is the time between two looks at the files.
const Interval = 500 * time.Millisecond

// maxRead bounds what a look reads of a file, in bytes. A change beyond it is not noticed.
const maxRead = 2 << 20

// Watch watches some files. Its goroutine ends with Stop.
type Watch struct {
	names   []string
	changed func()
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Start starts a watch. Its goroutine calls changed after the content of a file has changed and then
// stayed the same for one Interval, so a file that is being written is not taken for a new one. A
// file that disappears, or cannot be read, counts as changed. The caller reads the files after Start,
// so that it misses no change, and must call Stop.
func Start(changed func(), names ...string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{names: names, changed: changed, cancel: cancel, ended: make(chan struct{})}
	go w.run(ctx, w.digest())
	return w
}

// Stop ends the watch, and waits until changed has returned.
func (w *Watch) Stop() {
	w.cancel()
	<-w.ended
}

// run looks at the files until ctx ends. reported is the digest of the content that the caller has.
func (w *Watch) run(ctx context.Context, reported [sha256.Size]byte) {
	defer close(w.ended)
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for last := reported; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := w.digest()
		if now == last && now != reported {
			reported = now
			w.changed()
		}
		last = now
	}
}

// digest returns a digest of the content of all files.
func (w *Watch) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range w.names {
		d := digestFile(name)
		_, _ = h.Write(d[:]) // never fails
	}
	h.Sum(sum[:0])
	return sum
}

// digestFile returns a digest of a file's content. All files that cannot be read have the same one.
func digestFile(name string) (sum [sha256.Size]byte) {
	f, err := os.Open(name)
	if err != nil {
		return sum
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxRead)); err != nil {
		return sum
	}
	h.Sum(sum[:0])
	return sum
}
