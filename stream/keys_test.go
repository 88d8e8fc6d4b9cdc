package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestKeys: the list of keys is sorted, has none that are deleted, and is complete: a caller that leaves gets an
// error in place of a part.
func TestKeys(t *testing.T) {
	t.Parallel()
	const count = 1000 // more than the client library reads ahead
	l := streamtest.Open(t)
	bucket := must[jetstream.KeyValue](t)(l.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "keys"}))
	var want []string
	for i := range count {
		key := fmt.Sprintf("a.%04d", count-i)
		must[uint64](t)(bucket.PutString(t.Context(), key, "value"))
		want = append(want, key)
	}
	must[uint64](t)(bucket.PutString(t.Context(), "b.1", "value"))
	if err := errors.Join(bucket.Delete(t.Context(), want[1]), bucket.Purge(t.Context(), want[2])); err != nil {
		t.Fatal(err)
	}
	got := must[[]string](t)(stream.Keys(t.Context(), bucket, "a.*"))
	want = slices.Delete(want, 1, 3)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got %d keys from %q on, want %d from %q on", len(got), got[0], len(want), want[0])
	}
	if none := must[[]string](t)(stream.Keys(t.Context(), bucket, "c.*")); len(none) != 0 {
		t.Errorf("keys of an unknown prefix = %q, want none", none)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if keys, err := stream.Keys(ctx, leaving{bucket, cancel}, "a.*"); !errors.Is(err, context.Canceled) {
		t.Errorf("keys for a caller that is gone = %d keys, %v, want %v", len(keys), err, context.Canceled)
	}
}

// leaving is a bucket whose caller is gone when the keys begin to arrive.
type leaving struct {
	jetstream.KeyValue

	leave func()
}

// WatchFiltered implements jetstream.KeyValue.
func (b leaving) WatchFiltered(ctx context.Context, keys []string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := b.KeyValue.WatchFiltered(ctx, keys, opts...)
	b.leave()
	return w, err
}
