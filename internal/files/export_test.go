package files

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream/streamtest"
)

// Chunks returns the number of chunks in NATS.
func (s *Store) Chunks(t *testing.T) uint64 {
	t.Helper()
	c, ok := s.storage.(*chunks)
	if !ok {
		t.Fatal("the storage is not that of NATS")
	}
	info, err := c.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

// Stored returns the number of chunks and entries, without the secrets of tenants.
func (s *Store) Stored(t *testing.T) uint64 {
	t.Helper()
	n := s.Chunks(t)
	for _, prefix := range []string{filePrefix, contentPrefix, blobPrefix} {
		if err := s.each(t.Context(), prefix, func(string, []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Interrupt leaves what processes leave that die: while the bytes arrive, before the entry of the file
// is written, and within a deletion.
func (s *Store) Interrupt(t *testing.T, tenant string) {
	t.Helper()
	never := storedContent{Tenant: tenant, Blob: "shared", Files: map[string]time.Time{"file_never": time.Now()}}
	value, err := json.Marshal(never)
	if err == nil {
		_, err = s.bucket.Put(t.Context(), contentKey(tenant, "shared"), value)
	}
	if err != nil {
		t.Fatal(err)
	}
	for blob, digest := range map[string]string{"begun": "", "shared": "shared", "dropped": "without-content"} {
		if err := s.putBlob(t.Context(), blob, storedBlob{Tenant: tenant, CreatedAt: time.Now(), Digest: digest}); err != nil {
			t.Fatal(err)
		}
		if err := s.storage.Write(t.Context(), blob, bytes.NewReader(make([]byte, 3*chunkBytes))); err != nil {
			t.Fatal(err)
		}
	}
}

// SetCreatedAt sets when a file was uploaded.
func (s *Store) SetCreatedAt(t *testing.T, f *File, at time.Time) {
	t.Helper()
	err := s.changeFile(t.Context(), f.Tenant, f.ID, func(stored *storedFile) (*storedFile, error) {
		stored.CreatedAt = at
		return stored, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Age makes the references to a file older.
func (s *Store) Age(t *testing.T, f *File, by time.Duration) {
	t.Helper()
	err := s.changeFile(t.Context(), f.Tenant, f.ID, func(stored *storedFile) (*storedFile, error) {
		for thread, since := range stored.Threads {
			stored.Threads[thread] = since.Add(-by)
		}
		return stored, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Expire makes an upload so old that it has expired.
func (s *Store) Expire(t *testing.T, u *Resumable) {
	t.Helper()
	u.CreatedAt = u.CreatedAt.Add(-Lifetime)
	if err := s.update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// Forget removes the entry of a file, as a deletion that is interrupted before it removes the bytes.
func (s *Store) Forget(t *testing.T, f *File) {
	t.Helper()
	if err := s.changeFile(t.Context(), f.Tenant, f.ID, func(*storedFile) (*storedFile, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
}

// DropContent continues the deletion of a file after Forget.
func (s *Store) DropContent(t *testing.T, f *File) {
	t.Helper()
	if err := s.dropContent(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// PutAgain stores the bytes of a plain file again, and calls during before it writes the entry of the file.
func (s *Store) PutAgain(t *testing.T, f *File, during func()) *File {
	t.Helper()
	again := *f
	again.CreatedAt = time.Now().UTC()
	err := s.shareAs(t.Context(), &again, storedBlob{Tenant: f.Tenant, CreatedAt: again.CreatedAt})
	if during(); err == nil {
		err = s.create(t.Context(), &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &again
}

// ReadContents reads the contents as a sweep does, and returns a function that sweeps them.
func (s *Store) ReadContents(t *testing.T) (sweep func(now time.Time)) {
	t.Helper()
	contents := map[string][]byte{}
	err := s.each(t.Context(), contentPrefix, func(key string, value []byte) error { contents[key] = value; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return func(now time.Time) {
		t.Helper()
		for key, value := range contents {
			if err := s.sweepContent(t.Context(), key, value, now); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// delayedPublisher publishes a chunk when it is awaited.
type delayedPublisher struct {
	jetstream.JetStream

	delayed []*delayedChunk
}

// PublishAsync implements jetstream.Publisher.
func (p *delayedPublisher) PublishAsync(subject string, data []byte, _ ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	c := &delayedChunk{publish: sync.OnceValues(func() (jetstream.PubAckFuture, error) { return p.JetStream.PublishAsync(subject, data) })}
	p.delayed = append(p.delayed, c)
	return c, nil
}

// delayedChunk is a chunk of a delayedPublisher, of a server that takes every chunk.
type delayedChunk struct {
	publish func() (jetstream.PubAckFuture, error)
}

// Ok implements jetstream.PubAckFuture.
func (c *delayedChunk) Ok() <-chan *jetstream.PubAck {
	future, err := c.publish()
	if err != nil {
		return nil
	}
	return future.Ok()
}

// Err implements jetstream.PubAckFuture.
func (c *delayedChunk) Err() <-chan error { return nil }

// Msg implements jetstream.PubAckFuture.
func (c *delayedChunk) Msg() *nats.Msg { return nil }

// DelayChunks makes chunks arrive when the store awaits them, and those that it never awaits when the
// test calls arrive.
func (s *Store) DelayChunks(t *testing.T) (arrive func()) {
	t.Helper()
	c, ok := s.storage.(*chunks)
	if !ok {
		t.Fatal("the storage is not that of NATS")
	}
	p := &delayedPublisher{JetStream: c.js}
	c.js = p
	return func() {
		for _, chunk := range p.delayed {
			if _, err := chunk.publish(); err != nil {
				t.Fatal(err)
			}
		}
		<-p.PublishAsyncComplete()
	}
}

// LoseAcks has nobody acknowledge the chunks of the store.
func (s *Store) LoseAcks(t *testing.T) {
	t.Helper()
	c, ok := s.storage.(*chunks)
	if !ok {
		t.Fatal("the storage is not that of NATS")
	}
	c.prefix = "lost"
	if _, err := s.log.Conn().Subscribe("lost.>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
}

// InterruptPart leaves what a process leaves that dies while a part of an upload arrives.
func (s *Store) InterruptPart(t *testing.T, u *Resumable) {
	t.Helper()
	err := s.putBlob(t.Context(), "begun", storedBlob{Tenant: u.Tenant, CreatedAt: time.Now(), Upload: u.ID})
	if err == nil {
		err = s.storage.Write(t.Context(), "begun", bytes.NewReader(make([]byte, chunkBytes/2)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// InterruptNext leaves the part of an upload that arrives when a process dies.
func (s *Store) InterruptNext(t *testing.T, u *Resumable) {
	t.Helper()
	if err := s.putBlob(t.Context(), u.Next, storedBlob{Tenant: u.Tenant, CreatedAt: time.Now(), Upload: u.ID}); err != nil {
		t.Fatal(err)
	}
	s.WriteNext(t, u)
}

// WriteNext writes bytes of the part of an upload that arrives.
func (s *Store) WriteNext(t *testing.T, u *Resumable) {
	t.Helper()
	if err := s.storage.Write(t.Context(), u.Next, bytes.NewReader(make([]byte, chunkBytes/2))); err != nil {
		t.Fatal(err)
	}
}

// FillParts gives an upload as many parts, without bytes, as may be.
func (s *Store) FillParts(t *testing.T, u *Resumable) {
	t.Helper()
	u.Parts = make([]part, maxParts)
	for i := range u.Parts {
		u.Parts[i].Blob = newName()
	}
	if err := s.update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// Contend has a replicated bucket refuse the next write of a change, as it does while another write of the
// key is on the way to the replicas.
func (s *Store) Contend() { s.bucket = streamtest.Contended(s.bucket) }
