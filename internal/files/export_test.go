package files

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
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
	for _, prefix := range []string{filePrefix, contentPrefix, blobPrefix, uploadPrefix} {
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
	err := s.putBlob(t.Context(), u.Next, storedBlob{Tenant: u.Tenant, CreatedAt: time.Now(), Upload: u.ID})
	if err == nil {
		err = s.storage.Write(t.Context(), u.Next, bytes.NewReader(make([]byte, chunkBytes/2)))
	}
	if err != nil {
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
