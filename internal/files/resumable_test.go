package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// create begins a resumable upload of the tenant acme.
func create(t *testing.T, s *files.Store, name string, size int64) *files.Resumable {
	t.Helper()
	u, err := s.CreateUpload(t.Context(), files.Upload{Tenant: "acme", Owner: "ann", Name: name, Type: "image/png"}, size)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return u
}

// find reads an upload.
func find(t *testing.T, s *files.Store, u *files.Resumable) *files.Resumable {
	t.Helper()
	found, err := s.FindUpload(t.Context(), u.Tenant, u.ID)
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	return found
}

// add appends bytes to an upload.
func add(t *testing.T, s *files.Store, u *files.Resumable, content []byte) {
	t.Helper()
	if n, err := s.Append(t.Context(), u, bytes.NewReader(content)); n != int64(len(content)) || err != nil {
		t.Fatalf("append = %d, %v, want %d", n, err, len(content))
	}
}

// finish stores the file of an upload.
func finish(t *testing.T, s *files.Store, u *files.Resumable, wantNew bool) *files.File {
	t.Helper()
	if isNew, err := s.FinishUpload(t.Context(), u); err != nil || isNew != wantNew {
		t.Fatalf("finish = %v, %v, want %v", isNew, err, wantNew)
	}
	f, err := s.Find(t.Context(), u.Tenant, u.FileID())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUploadContinuesAfterBreaks: what has arrived before a break stays, and the file has all bytes.
func TestUploadContinuesAfterBreaks(t *testing.T) {
	t.Parallel()
	for name, isPlain := range map[string]bool{"encrypted": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, streamtest.Server(t), files.Options{}, isPlain)
			content := noise(20<<20 + 17)
			u := create(t, s, "a.png", int64(len(content)))
			broken := errors.New("broken")
			for _, size := range []int{100, 300 << 10, 9 << 20, 0} {
				u = find(t, s, u)
				at := u.Offset()
				n, err := s.Append(t.Context(), u, io.MultiReader(bytes.NewReader(content[at:at+int64(size)]), iotest.ErrReader(broken)))
				if n != int64(size) || !errors.Is(err, broken) {
					t.Fatalf("append = %d, %v, want %d and the failure of the body", n, err, size)
				}
				s.InterruptNext(t, u)
				if got := find(t, s, u).Offset(); got != at+int64(size) {
					t.Fatalf("offset = %d, want %d", got, at+int64(size))
				}
			}
			u = find(t, s, u)
			add(t, s, u, content[u.Offset():])
			f := finish(t, s, u, true)
			if f.Name != "a.png" || f.Type != "image/png" || f.Owner != "ann" || !bytes.Equal(read(t, s, f, 0), content) {
				t.Errorf("file = %+v, want the bytes of the upload", f)
			}
			if u = find(t, s, u); !u.IsStored || u.Offset() != u.Size {
				t.Errorf("upload = %+v, want a stored one", u)
			}
			if again := finish(t, s, u, false); !again.CreatedAt.Equal(f.CreatedAt) {
				t.Error("a second end of the upload has made another file")
			}
			if err := s.DeleteUpload(t.Context(), "acme", u.ID); err != nil {
				t.Fatal(err)
			}
			if err := s.DeleteUnused(t.Context(), "acme", f.ID); err != nil {
				t.Fatal(err)
			}
			sweepLate(t, s)
			if n := s.Stored(t); n != 0 {
				t.Errorf("entries and chunks after the deletion = %d, want none", n)
			}
		})
	}
}

// sweepLate removes what interrupted uploads have left, as hours later.
func sweepLate(t *testing.T, s *files.Store) {
	t.Helper()
	exists := func(context.Context, stream.Thread) (bool, error) { return true, nil }
	if err := s.Sweep(t.Context(), index(t, s), time.Now().Add(3*files.UploadTime), exists); err != nil {
		t.Fatal(err)
	}
}

// TestLateBytesOfDeadProcess: a process writes bytes of an upload that another request has continued or
// deleted, and dies before it removes them. A sweep does.
func TestLateBytesOfDeadProcess(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	continued, deleted := create(t, s, "a.png", 10), create(t, s, "b.png", 10)
	for _, u := range []*files.Resumable{continued, deleted} {
		add(t, s, u, noise(5))
		s.InterruptNext(t, u)
		dying := *u
		if u == continued {
			add(t, s, find(t, s, u), noise(1))
		}
		if err := s.DeleteUpload(t.Context(), "acme", u.ID); err != nil {
			t.Fatal(err)
		}
		s.WriteNext(t, &dying)
	}
	sweepLate(t, s)
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the sweep = %d, want none", n)
	}
}

// TestUploadKeepsWhatArrivesBeforeCancel: the end of a request's context keeps the bytes before it.
func TestUploadKeepsWhatArrivesBeforeCancel(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	u := create(t, s, "", 1000)
	ctx, cancel := context.WithCancel(t.Context())
	body := io.MultiReader(strings.NewReader("before"), readerFunc(func([]byte) (int, error) { cancel(); return 0, nil }))
	if n, err := s.Append(ctx, u, body); n != 6 || !errors.Is(err, context.Canceled) {
		t.Errorf("append = %d, %v, want 6 and %v", n, err, context.Canceled)
	}
	if n := find(t, s, u).Offset(); n != 6 {
		t.Errorf("offset = %d, want 6", n)
	}
}

// TestLongBodyCompletesNothing: the last part of a body with more bytes than the upload lacks is dropped.
// Earlier parts stay.
func TestLongBodyCompletesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	const size, part = 8<<20 + 5, 8 << 20
	content := noise(size + 1)
	u := create(t, s, "", size)
	if n, err := s.Append(t.Context(), u, bytes.NewReader(content)); n != part || !errors.Is(err, files.ErrManyBytes) {
		t.Fatalf("append = %d, %v, want the first part and %v", n, err, files.ErrManyBytes)
	}
	for range 2 {
		if u = find(t, s, u); u.Offset() != part {
			t.Fatalf("offset = %d, want %d", u.Offset(), part)
		}
		if n, err := s.Append(t.Context(), u, iotest.OneByteReader(bytes.NewReader(content[part:]))); n != 0 || !errors.Is(err, files.ErrManyBytes) {
			t.Errorf("append of the rest = %d, %v, want %v", n, err, files.ErrManyBytes)
		}
	}
	u = find(t, s, u)
	add(t, s, u, content[part:size])
	f := finish(t, s, u, true)
	if !bytes.Equal(read(t, s, f, 0), content[:size]) {
		t.Error("the file has other bytes than the upload")
	}
	if err := errors.Join(s.DeleteUpload(t.Context(), "acme", u.ID), s.DeleteUnused(t.Context(), "acme", f.ID)); err != nil {
		t.Fatal(err)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the deletion = %d, want none", n)
	}
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestNewestRequestHasUpload: bytes of an earlier request that arrive after those of a newer one are
// dropped, in another process, too.
func TestNewestRequestHasUpload(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	s, other := open(t, server, files.Options{}, false), open(t, server, files.Options{}, false)
	u := create(t, s, "", 6)
	begun, release, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		earlier, err := s.FindUpload(t.Context(), u.Tenant, u.ID)
		if err == nil {
			_, err = s.Append(t.Context(), earlier, io.MultiReader(strings.NewReader("old"), readerFunc(func([]byte) (int, error) {
				close(begun)
				<-release
				return 0, io.EOF
			})))
		}
		refused <- err
	}()
	select {
	case <-begun:
	case err := <-refused:
		t.Fatal(err)
	}
	body := io.MultiReader(readerFunc(func([]byte) (int, error) { // the newer request has begun, and has no bytes
		close(release)
		if err := <-refused; !errors.Is(err, files.ErrUploadChanged) {
			t.Errorf("append of the earlier request: got %v, want %v", err, files.ErrUploadChanged)
		}
		return 0, io.EOF
	}), strings.NewReader("new"))
	if n, err := other.Append(t.Context(), find(t, other, u), body); n != 3 || err != nil {
		t.Errorf("append of the newer request = %d, %v, want 3", n, err)
	}
	stale := find(t, s, u)
	add(t, other, find(t, other, u), []byte("est"))
	if n, err := s.Append(t.Context(), stale, strings.NewReader("old")); n != 0 || !errors.Is(err, files.ErrUploadChanged) {
		t.Errorf("append with an old revision = %d, %v, want %v", n, err, files.ErrUploadChanged)
	}
	if got := string(read(t, s, finish(t, s, find(t, s, u), true), 0)); got != "newest" {
		t.Errorf("file = %q, want %q", got, "newest")
	}
}

// TestUploadFinishesAfterKill: a process that dies after the file was stored, and before the upload knows
// it, leaves an upload that becomes the same file.
func TestUploadFinishesAfterKill(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	u := create(t, s, "a.txt", 4)
	add(t, s, u, []byte("text"))
	f := put(t, s, files.Upload{Tenant: "acme", Owner: "ann", ID: u.FileID(), Name: "a.txt"}, "text")
	concurrent := find(t, s, u)
	again := finish(t, s, find(t, s, u), true)
	if again.ID != f.ID || again.CreatedAt.Before(f.CreatedAt) || string(read(t, s, again, 0)) != "text" {
		t.Errorf("file = %+v, want %+v", again, f)
	}
	finish(t, s, concurrent, false)
	if x := index(t, s); len(x.List("acme", "ann", "")) != 1 {
		t.Error("the file is there twice")
	}
}

func TestSweepOfUploads(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	u := create(t, s, "a.png", 1000)
	add(t, s, u, noise(300))
	s.InterruptPart(t, u)
	x := index(t, s)
	if n := x.Bytes("acme"); n != 1000 {
		t.Errorf("bytes of the tenant = %d, want the announced 1000", n)
	}
	none := func(context.Context, stream.Thread) (bool, error) { return false, nil }
	stored := s.Stored(t)
	if err := s.Sweep(t.Context(), x, time.Now().Add(files.Lifetime-time.Minute), none); err != nil {
		t.Fatal(err)
	}
	if n := s.Stored(t); n != stored-2 {
		t.Errorf("entries and chunks = %d, want %d: those of the interrupted part are removed", n, stored-2)
	}
	if n := find(t, s, u).Offset(); n != 300 {
		t.Errorf("offset = %d, want 300", n)
	}
	add(t, s, find(t, s, u), noise(700))
	if err := s.Sweep(t.Context(), x, time.Now().Add(files.Lifetime+time.Minute), none); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindUpload(t.Context(), "acme", u.ID); !errors.Is(err, files.ErrUnknownUpload) {
		t.Errorf("find an expired upload: got %v, want %v", err, files.ErrUnknownUpload)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the last sweep = %d, want none", n)
	}
}

func TestRefusedResumableUploads(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{MaxSize: 10 << 20, Scanner: threats{}}, false)
	for size, want := range map[int64]error{10<<20 + 1: files.ErrTooLarge, 0: files.ErrEmpty, -1: files.ErrEmpty} {
		if _, err := s.CreateUpload(t.Context(), files.Upload{Tenant: "acme"}, size); !errors.Is(err, want) {
			t.Errorf("create with %d bytes: got %v, want %v", size, err, want)
		}
	}
	u := create(t, s, "a", 2)
	for _, id := range []string{"", "upload_", "upload_A", "file_a", u.FileID(), u.ID + "/.."} {
		if _, err := s.FindUpload(t.Context(), "acme", id); !errors.Is(err, files.ErrUnknownUpload) {
			t.Errorf("find %q: got %v, want %v", id, err, files.ErrUnknownUpload)
		}
	}
	if _, err := s.FindUpload(t.Context(), "globex", u.ID); !errors.Is(err, files.ErrUnknownUpload) {
		t.Errorf("find as another tenant: got %v, want %v", err, files.ErrUnknownUpload)
	}
	s.FillParts(t, u)
	full := find(t, s, u)
	if _, err := s.Append(t.Context(), full, strings.NewReader("x")); !errors.Is(err, files.ErrManyParts) {
		t.Errorf("append to 1,000 parts: got %v, want %v", err, files.ErrManyParts)
	}
	s.InterruptNext(t, full)
	if err := s.DeleteUpload(t.Context(), "acme", u.ID); err != nil {
		t.Fatal(err)
	}
	infected := create(t, s, "b", 5)
	add(t, s, infected, []byte("virus"))
	var threat *files.ThreatError
	if _, err := s.FinishUpload(t.Context(), infected); !errors.As(err, &threat) {
		t.Errorf("finish: got %v, want a threat", err)
	}
	sweepLate(t, s)
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after refused uploads = %d, want none", n)
	}
}

// threats is a scanner that finds a threat in every file.
type threats struct{}

// Scan implements files.Scanner.
func (threats) Scan(_ context.Context, r io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, r)
	return "Test", err
}

// TestPartsAreEncrypted: what has arrived of an upload is on disk neither with its bytes nor with its
// name.
func TestPartsAreEncrypted(t *testing.T) {
	t.Parallel()
	for name, isPlain := range map[string]bool{"encrypted": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, streamtest.ServerAt(t, dir), files.Options{}, isPlain)
			add(t, s, create(t, s, "the-secret-name", 100), []byte("before the-secret-content after"))
			for _, text := range []string{"the-secret-name", "the-secret-content"} {
				if has := contains(t, dir, text); has != isPlain {
					t.Errorf("the directory has %q = %v, want %v", text, has, isPlain)
				}
			}
		})
	}
}

// TestDeletedUploadLeavesNoFile: an upload that is deleted while its file is stored leaves no file, as the
// deletion of a subject requires.
func TestDeletedUploadLeavesNoFile(t *testing.T) {
	t.Parallel()
	deletion := &scanning{}
	s := open(t, streamtest.Server(t), files.Options{Scanner: deletion}, false)
	u := create(t, s, "a.txt", 4)
	add(t, s, u, []byte("text"))
	deletion.then = func(ctx context.Context) error { return s.DeleteUpload(ctx, u.Tenant, u.ID) }
	if isNew, err := s.FinishUpload(t.Context(), u); isNew || !errors.Is(err, files.ErrUnknownUpload) {
		t.Errorf("finish = %v, %v, want %v", isNew, err, files.ErrUnknownUpload)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the deletion = %d, want none", n)
	}
}

// TestAcknowledgedFileStays: the file that one process has acknowledged stays, although another process finishes
// the same upload after the upload was deleted, or has expired.
func TestAcknowledgedFileStays(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		end  func(*testing.T, *files.Store, *files.Resumable)
		want error
	}{
		"deleted": {func(t *testing.T, s *files.Store, u *files.Resumable) {
			if err := s.DeleteUpload(t.Context(), u.Tenant, u.ID); err != nil {
				t.Error(err)
			}
		}, files.ErrUnknownUpload},
		"expired": {func(t *testing.T, s *files.Store, u *files.Resumable) { s.Expire(t, find(t, s, u)) }, nil},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, late := streamtest.Server(t), &scanning{}
			first, second := open(t, server, files.Options{}, false), open(t, server, files.Options{Scanner: late}, false)
			u := create(t, first, "a.txt", 4)
			add(t, first, u, []byte("text"))
			late.then = func(context.Context) error {
				finish(t, first, find(t, first, u), true)
				c.end(t, first, u)
				return nil
			}
			if isNew, err := second.FinishUpload(t.Context(), find(t, second, u)); isNew || !errors.Is(err, c.want) {
				t.Errorf("finish in the second process = %v, %v, want %v", isNew, err, c.want)
			}
			f, err := first.Find(t.Context(), u.Tenant, u.FileID())
			if err != nil {
				t.Fatalf("the acknowledged file: %v", err)
			}
			if got := string(read(t, first, f, 0)); got != "text" {
				t.Errorf("file = %q, want %q", got, "text")
			}
		})
	}
}

// scanning is a scanner that does something when it has read a file.
type scanning struct {
	then func(context.Context) error
}

// Scan implements files.Scanner.
func (s *scanning) Scan(ctx context.Context, r io.Reader) (string, error) {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return "", err
	}
	return "", s.then(ctx)
}

// TestReservationSeesUploads: with a reservation, an index has all uploads that were begun before it.
func TestReservationSeesUploads(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	x := index(t, s)
	for n := range int64(200) {
		create(t, s, "", 1)
		release, err := x.Reserve(t.Context(), "acme", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Bytes("acme"); got != n+1 {
			t.Fatalf("bytes with a reservation after %d uploads = %d", n+1, got)
		}
		release()
	}
}

// TestUploadFinishesOnce: of many requests that find an upload complete, one stores its file: storing it
// costs as much as the upload.
func TestUploadFinishesOnce(t *testing.T) {
	t.Parallel()
	scanner := &scanning{}
	s := open(t, streamtest.Server(t), files.Options{Scanner: scanner}, false)
	u := create(t, s, "a.txt", 4)
	add(t, s, u, []byte("text"))
	var scans atomic.Int32
	var others sync.WaitGroup
	scanner.then = func(context.Context) error {
		if scans.Add(1) > 1 {
			return nil
		}
		for range 5 {
			other := find(t, s, u)
			others.Go(func() {
				if isNew, err := s.FinishUpload(t.Context(), other); isNew || err != nil || !other.IsStored {
					t.Errorf("finish = %v, %v, want the file of the first request", isNew, err)
				}
			})
		}
		return nil
	}
	finish(t, s, u, true)
	others.Wait()
	if n := scans.Load(); n != 1 {
		t.Errorf("the file was stored %d times, want once", n)
	}
}
