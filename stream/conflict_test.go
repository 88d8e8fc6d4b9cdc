package stream_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestIsConflict: each form in which NATS refuses a conditional write is a conflict, and no other error is.
func TestIsConflict(t *testing.T) {
	t.Parallel()
	replicated := &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}
	for _, err := range []error{jetstream.ErrKeyExists, jetstream.ErrKeyRevisionMismatch, replicated, &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}} {
		if !stream.IsConflict(fmt.Errorf("update: %w", err)) {
			t.Errorf("IsConflict(%v) = false, want true", err)
		}
	}
	for _, err := range []error{nil, jetstream.ErrKeyNotFound, errors.New("timeout"), &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamNotFound}} {
		if stream.IsConflict(err) {
			t.Errorf("IsConflict(%v) = true, want false", err)
		}
	}
}

// TestConflictsOfServer: the server's answers to writes of a key that another writer has changed are conflicts.
func TestConflictsOfServer(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), streamtest.Open(t)
	bucket, err := l.KeyValue(ctx, jetstream.KeyValueConfig{Bucket: "conflicts"})
	if err != nil {
		t.Fatal(err)
	}
	old, err := bucket.Create(ctx, "key", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Update(ctx, "key", []byte("2"), old); err != nil {
		t.Fatal(err)
	}
	_, created := bucket.Create(ctx, "key", []byte("3"))
	_, updated := bucket.Update(ctx, "key", []byte("3"), old)
	js, err := jetstream.New(l.Conn())
	if err != nil {
		t.Fatal(err)
	}
	_, published := js.Publish(ctx, "$KV."+bucket.Bucket()+".key", []byte("3"), jetstream.WithExpectLastSequencePerSubject(old))
	for name, err := range map[string]error{
		"create": created, "update": updated, "purge": bucket.Purge(ctx, "key", jetstream.LastRevision(old)), "message": published,
	} {
		if !stream.IsConflict(err) {
			t.Errorf("%s of a changed key: %v is no conflict, want one", name, err)
		}
	}
}
