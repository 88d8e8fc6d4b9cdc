package stream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream/streamtest"
)

// TestLastValueIsThatOfTheLeader: LastValue returns the newest value of a key, and none for a key
// that is missing, was deleted or has expired.
func TestLastValueIsThatOfTheLeader(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	kv, err := l.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "shelf", LimitMarkerTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	want := func(key, value string, revision uint64) {
		t.Helper()
		got, at, err := l.LastValue(t.Context(), kv, key)
		if err != nil || string(got) != value || (got == nil) != (value == "") || revision != 0 && at != revision {
			t.Errorf("LastValue(%s) = %q, %d, %v, want %q, %d", key, got, at, err, value, revision)
		}
	}
	want("a", "", 0)
	for _, value := range []string{"one", "two"} {
		revision, err := kv.PutString(t.Context(), "a", value)
		if err != nil {
			t.Fatal(err)
		}
		want("a", value, revision)
	}
	if err := kv.Purge(t.Context(), "a", jetstream.PurgeTTL(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want("a", "", 0)
	changes, err := kv.Watch(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	<-changes.Updates() // there are no present values
	revision, err := kv.Create(t.Context(), "b", []byte("short"), jetstream.KeyTTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want("b", "short", revision)
	for change := range changes.Updates() {
		if change.Operation() != jetstream.KeyValuePut {
			break
		}
	}
	want("b", "", 0)
	if err := changes.Stop(); err != nil {
		t.Error(err)
	}
}
