package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// errWatchEnded tells that a watcher has ended with its connection.
var errWatchEnded = errors.New("the connection has ended")

// Keys returns the keys of a bucket that match a filter, sorted. The list is complete: if ctx or the
// connection ends before, Keys returns an error. The KeyLister of the client library would end as if it had
// read everything. Errors: ErrUnavailable.
func Keys(ctx context.Context, bucket jetstream.KeyValue, filter string) ([]string, error) {
	w, err := bucket.WatchFiltered(ctx, []string{filter}, jetstream.IgnoreDeletes(), jetstream.MetaOnly())
	if err != nil {
		return nil, fmt.Errorf("stream: list keys: %w", asUnavailable(err))
	}
	defer StopWatch(w)
	var keys []string
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stream: list keys: %w", asUnavailable(context.Cause(ctx)))
		case entry, isOpen := <-w.Updates():
			switch {
			case !isOpen && ctx.Err() == nil:
				return nil, fmt.Errorf("stream: list keys: %w", asUnavailable(errWatchEnded))
			case !isOpen:
				return nil, fmt.Errorf("stream: list keys: %w", asUnavailable(context.Cause(ctx)))
			case entry == nil: // all entries have arrived
				slices.Sort(keys)
				return slices.Compact(keys), nil // one that changes meanwhile may arrive again
			}
			keys = append(keys, entry.Key())
		}
	}
}

// StopWatch ends a watcher. The goroutine of the client library blocks until the entries that it has received
// are read, so StopWatch drops them.
func StopWatch(w jetstream.KeyWatcher) {
	_ = w.Stop()
	go func() {
		for range w.Updates() { // ends soon: the watcher closes the channel
		}
	}()
}
