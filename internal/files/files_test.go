package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
	"gocloud.dev/secrets/localsecrets"

	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// open opens a store on a server, of a log with encryption unless isPlain is set.
func open(t *testing.T, s *server.Server, o files.Options, isPlain bool) *files.Store {
	t.Helper()
	var options stream.Options
	if !isPlain {
		options.Cipher = encryption.Cipher([]encryption.OperatorKey{{ID: "k", Keeper: localsecrets.NewKeeper([32]byte{1})}})
	}
	l, err := stream.Open(t.Context(), streamtest.Connect(t, s), options)
	if err != nil {
		t.Fatal(err)
	}
	store, err := files.Open(t.Context(), l, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// index begins an index that ends with the test.
func index(t *testing.T, s *files.Store) *files.Index {
	t.Helper()
	x, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	return x
}

// put stores a file.
func put(t *testing.T, s *files.Store, u files.Upload, content string) *files.File {
	t.Helper()
	u.Body = strings.NewReader(content)
	f, err := s.Put(t.Context(), u)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return f
}

// read returns the bytes of a file from an offset on.
func read(t *testing.T, s *files.Store, f *files.File, offset int64) []byte {
	t.Helper()
	c, err := s.Open(t.Context(), f)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer c.Close()
	if _, err := c.Seek(offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("read from %d: %v", offset, err)
	}
	return all
}

// noise returns random bytes, which begin like a PNG.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	copy(b, "\x89PNG\r\n\x1a\n")
	return b
}

// mustNotExist fails unless a file is unknown and its bytes cannot be read.
func mustNotExist(t *testing.T, s *files.Store, f *files.File) {
	t.Helper()
	if _, err := s.Find(t.Context(), f.Tenant, f.ID); !errors.Is(err, files.ErrUnknown) {
		t.Errorf("find: got %v, want %v", err, files.ErrUnknown)
	}
	if _, err := s.Open(t.Context(), f); !errors.Is(err, files.ErrUnknown) {
		t.Errorf("open: got %v, want %v", err, files.ErrUnknown)
	}
}

func TestRangesOfFile(t *testing.T) {
	t.Parallel()
	for name, isPlain := range map[string]bool{"encrypted": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, streamtest.Server(t), files.Options{}, isPlain)
			for _, size := range []int{8, 64 << 10, 64<<10 + 1, 256 << 10, 1<<20 + 17} {
				content := noise(size)
				f := put(t, s, files.Upload{Tenant: "acme", Name: "a.png"}, string(content))
				found, err := s.Find(t.Context(), "acme", f.ID)
				if err != nil || found.Name != "a.png" || found.Type != "image/png" || found.Size != int64(size) {
					t.Fatalf("found = %+v, %v", found, err)
				}
				for _, offset := range []int{0, 1, 7, 65_535, 65_536, 65_537, 262_143, 262_144, 300_000, size - 1, size} {
					if offset <= size && !bytes.Equal(read(t, s, found, int64(offset)), content[offset:]) {
						t.Errorf("%d bytes from %d: other bytes", size, offset)
					}
				}
			}
		})
	}
}

// heapSampler counts bytes that pass, and notes the most memory that was in use at each 8 MiB of them.
type heapSampler struct {
	passed, next int
	most         uint64 // bytes
}

// pass counts n bytes.
func (h *heapSampler) pass(n int) {
	if h.passed += n; h.passed < h.next {
		return
	}
	h.next = h.passed + 8<<20
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	h.most = max(h.most, stats.HeapAlloc)
}

// sampledReader reads from Reader, and Write drops what it gets. Both let heap sample.
type sampledReader struct {
	io.Reader

	heap *heapSampler
}

// Read implements io.Reader.
func (s sampledReader) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.heap.pass(n)
	return n, err
}

// TestLargeFileTakesLittleMemory: neither an upload of 100 MiB nor reading it holds more than some
// chunks in memory at any time. The server, which caches what it stores, is in this process.
func TestLargeFileTakesLittleMemory(t *testing.T) {
	const size, limit = 100 << 20, 40 << 20
	s := open(t, streamtest.Server(t), files.Options{}, false)
	var before, during heapSampler
	before.pass(1)
	f, err := s.Put(t.Context(), files.Upload{Tenant: "acme", Body: sampledReader{io.LimitReader(rand.NewChaCha8([32]byte{}), size), &during}})
	if err != nil || f.Size != size {
		t.Fatalf("put = %+v, %v", f, err)
	}
	c, err := s.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, sampledReader{c, &during}); n != size || err != nil {
		t.Fatalf("read = %d, %v", n, err)
	}
	if more := int64(during.most) - int64(before.most); more > limit {
		t.Errorf("heap in use = %d MiB more, want at most %d", more>>20, limit>>20)
	}
}

func TestRefusedUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, streamtest.ServerAt(t, dir), files.Options{MaxSize: 300 << 10}, false)
	for want, body := range map[error]io.Reader{
		files.ErrTooLarge:      bytes.NewReader(noise(300<<10 + 1)),
		files.ErrEmpty:         strings.NewReader(""),
		files.ErrIncomplete:    io.MultiReader(bytes.NewReader(noise(200<<10)), iotest.ErrReader(io.ErrUnexpectedEOF)),
		os.ErrDeadlineExceeded: io.MultiReader(bytes.NewReader(noise(280<<10)), iotest.ErrReader(os.ErrDeadlineExceeded)),
	} {
		if f, err := s.Put(t.Context(), files.Upload{Tenant: "acme", Body: body}); !errors.Is(err, want) {
			t.Errorf("put = %+v, %v, want %v", f, err, want)
		}
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after refused uploads = %d, want none", n)
	}
	put(t, s, files.Upload{Tenant: "acme"}, string(noise(300<<10)))
}

// TestBrokenUploadLeavesNothing: chunks that are on the way when an upload breaks off do not arrive after
// its removal.
func TestBrokenUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	arrive := s.DelayChunks(t)
	body := io.MultiReader(bytes.NewReader(noise(700<<10)), iotest.ErrReader(io.ErrUnexpectedEOF))
	if f, err := s.Put(t.Context(), files.Upload{Tenant: "acme", Body: body}); !errors.Is(err, files.ErrIncomplete) {
		t.Fatalf("put = %+v, %v, want %v", f, err, files.ErrIncomplete)
	}
	arrive()
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the upload = %d, want none", n)
	}
}

func TestEqualFilesShareBlob(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	content := string(noise(500 << 10))
	first := put(t, s, files.Upload{Tenant: "acme", Owner: "ann", Name: "a.png"}, content)
	chunks := s.Chunks(t)
	second := put(t, s, files.Upload{Tenant: "acme", Owner: "bob", Name: "b.png"}, content)
	if n := s.Chunks(t); n != chunks {
		t.Errorf("chunks after the second file = %d, want %d", n, chunks)
	}
	other := put(t, s, files.Upload{Tenant: "globex"}, content)
	if n := s.Chunks(t); n != 2*chunks {
		t.Errorf("chunks after the file of another tenant = %d, want %d", n, 2*chunks)
	}
	if _, err := s.Find(t.Context(), "globex", first.ID); !errors.Is(err, files.ErrUnknown) {
		t.Errorf("file of another tenant: got %v, want %v", err, files.ErrUnknown)
	}
	if err := s.DeleteUnused(t.Context(), "acme", first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(t.Context(), "acme", first.ID); !errors.Is(err, files.ErrUnknown) {
		t.Errorf("deleted file: got %v, want %v", err, files.ErrUnknown)
	}
	if found, err := s.Find(t.Context(), "acme", second.ID); err != nil || found.Name != "b.png" || string(read(t, s, found, 0)) != content {
		t.Errorf("the file with the same bytes = %+v, %v", found, err)
	}
	for _, f := range []*files.File{second, other} {
		if err := s.DeleteUnused(t.Context(), f.Tenant, f.ID); err != nil {
			t.Fatal(err)
		}
		mustNotExist(t, s, f)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after all deletions = %d, want none", n)
	}
}

func TestFileLivesAsLongAsItsThreads(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	f := put(t, s, files.Upload{Tenant: "acme"}, "text")
	for _, thread := range []string{"one", "two", "two"} {
		if err := s.Attach(t.Context(), "acme", f.ID, thread); err != nil {
			t.Fatal(err)
		}
	}
	x := index(t, s)
	all := func(context.Context, stream.Thread) (bool, error) { return true, nil }
	if err := s.Sweep(t.Context(), x, time.Now().Add(100*files.Lifetime), all); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), "acme", f.ID, "one"); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Find(t.Context(), "acme", f.ID); err != nil || string(read(t, s, found, 0)) != "text" {
		t.Errorf("file of one thread = %+v, %v", found, err)
	}
	for range 2 {
		if err := s.Release(t.Context(), "acme", f.ID, "two"); err != nil {
			t.Fatal(err)
		}
	}
	mustNotExist(t, s, f)
	if err := s.Attach(t.Context(), "acme", f.ID, "three"); !errors.Is(err, files.ErrUnknown) {
		t.Errorf("attach to a deleted file: got %v, want %v", err, files.ErrUnknown)
	}
}

// TestDeletionChecksEveryThread: a thread that refers to the file after the others were checked is checked, too.
func TestDeletionChecksEveryThread(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	f := put(t, s, files.Upload{Tenant: "acme", Thread: "free"}, "text")
	held := errors.New("held")
	check := func(thread string) error {
		if thread == "held" {
			return held
		}
		return s.Attach(t.Context(), "acme", f.ID, "held")
	}
	if err := s.Delete(t.Context(), "acme", f.ID, check); !errors.Is(err, held) {
		t.Errorf("deletion of a file with a held thread: got %v, want %v", err, held)
	}
	if found, err := s.Find(t.Context(), "acme", f.ID); err != nil || !found.IsOf("held") || string(read(t, s, found, 0)) != "text" {
		t.Errorf("file of the held thread = %+v, %v", found, err)
	}
	if err := s.Delete(t.Context(), "acme", f.ID, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	mustNotExist(t, s, f)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	unused := put(t, s, files.Upload{Tenant: "Äcme GmbH"}, "nobody refers to it")
	used := put(t, s, files.Upload{Tenant: "acme", Thread: "alive"}, "a thread refers to it")
	orphan := put(t, s, files.Upload{Tenant: "acme", Thread: "gone"}, "its thread was never written")
	s.Interrupt(t, "Äcme GmbH")
	x := index(t, s)
	exists := func(_ context.Context, thread stream.Thread) (bool, error) { return thread.ID == "alive", nil }
	stored := s.Stored(t)
	if err := s.Sweep(t.Context(), x, time.Now().Add(time.Hour), exists); err != nil {
		t.Fatal(err)
	}
	if n := s.Stored(t); n != stored {
		t.Errorf("entries and chunks after an hour = %d, want %d", n, stored)
	}
	if err := s.Sweep(t.Context(), x, time.Now().Add(files.Lifetime+time.Minute), exists); err != nil {
		t.Fatal(err)
	}
	mustNotExist(t, s, unused)
	mustNotExist(t, s, orphan)
	if found, err := s.Find(t.Context(), "acme", used.ID); err != nil || string(read(t, s, found, 0)) != "a thread refers to it" {
		t.Errorf("file of a thread = %+v, %v", found, err)
	}
	if err := s.Release(t.Context(), "acme", used.ID, "alive"); err != nil {
		t.Fatal(err)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after all = %d, want none", n)
	}
}

// TestReservationsCountInAllProcesses: the indexes of all processes count an upload while it runs, and no
// file is listed for it.
func TestReservationsCountInAllProcesses(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	s := open(t, server, files.Options{}, false)
	put(t, s, files.Upload{Tenant: "acme"}, "text")
	here, there := index(t, s), index(t, open(t, server, files.Options{}, false))
	first, err := here.Reserve(t.Context(), "acme", 100)
	if err != nil {
		t.Fatal(err)
	}
	second, err := there.Reserve(t.Context(), "acme", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n := there.Bytes("acme"); n != 1104 {
		t.Errorf("bytes = %d, want those of the file and of both uploads, 1104", n)
	}
	if late := index(t, s); late.Bytes("acme") != 1104 || late.Bytes("globex") != 0 || len(late.List("acme", "", "")) != 1 {
		t.Errorf("a new index has %d bytes and %d files, want 1104 and 1", late.Bytes("acme"), len(late.List("acme", "", "")))
	}
	first()
	second()
	for x := range map[*files.Index]bool{here: true, there: true} {
		for {
			changed := x.Changed()
			if x.Bytes("acme") == 4 {
				break
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			}
		}
	}
}

// TestSweepKeepsNewReference: a sweep does not take a file from a thread whose first input is on the way,
// however old the file is, and however old the sweep's index is.
func TestSweepKeepsNewReference(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	f := put(t, s, files.Upload{Tenant: "acme", Thread: "begins"}, "text")
	s.Age(t, f, 3*time.Hour)
	x := index(t, s)
	exists := func(context.Context, stream.Thread) (bool, error) {
		return false, s.Attach(t.Context(), "acme", f.ID, "begins") // the input arrives within the sweep
	}
	if err := s.Sweep(t.Context(), x, time.Now(), exists); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Find(t.Context(), "acme", f.ID); err != nil || !found.IsOf("begins") {
		t.Errorf("file = %+v, %v, want one of the thread", found, err)
	}
}

func TestExtractedFileIsOne(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	id := func(thread, content string) string {
		t.Helper()
		id, err := s.ExtractedID(t.Context(), "acme", thread, "text/plain", "", []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	extracted := id("one", "content")
	if again := id("one", "content"); again != extracted {
		t.Errorf("second ID = %s, want %s", again, extracted)
	}
	if extracted == id("two", "content") || extracted == id("one", "other") {
		t.Error("another thread or another content has the same ID")
	}
	for range 2 {
		put(t, s, files.Upload{Tenant: "acme", ID: extracted, Thread: "one"}, "content")
	}
	if f, err := s.Find(t.Context(), "acme", extracted); err != nil || len(f.Threads) != 1 {
		t.Errorf("file = %+v, %v, want one thread", f, err)
	}
}

// TestFileStoredAgainKeepsItsBytes: the deletion of a extracted file, or a sweep after it, does not remove the
// bytes of an upload that stores the same file again meanwhile.
func TestFileStoredAgainKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*files.Store, *files.File) *files.File{
		"deletion": func(s *files.Store, f *files.File) *files.File {
			return s.PutAgain(t, f, func() { s.DropContent(t, f) })
		},
		"sweep": func(s *files.Store, f *files.File) *files.File {
			sweep := s.ReadContents(t)
			return s.PutAgain(t, f, func() { sweep(time.Now().Add(files.Lifetime)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, streamtest.Server(t), files.Options{}, true)
			f := put(t, s, files.Upload{Tenant: "acme", Thread: "one"}, "content")
			s.Forget(t, f)
			again := store(s, f)
			if content := read(t, s, again, 0); string(content) != "content" {
				t.Errorf("content = %q", content)
			}
			if err := s.Release(t.Context(), "acme", f.ID, "one"); err != nil {
				t.Fatal(err)
			}
			if n := s.Stored(t); n != 0 {
				t.Errorf("entries and chunks after the deletion = %d, want none", n)
			}
		})
	}
}

// TestFileStoredTwiceIsDeletedAtOnce: the deletion of a file that two inputs have stored removes its bytes.
func TestFileStoredTwiceIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	f := put(t, s, files.Upload{Tenant: "acme", Thread: "one"}, "content")
	put(t, s, files.Upload{Tenant: "acme", Thread: "one", ID: f.ID}, "content")
	if err := s.Release(t.Context(), "acme", f.ID, "one"); err != nil {
		t.Fatal(err)
	}
	if n := s.Stored(t); n != 0 {
		t.Errorf("entries and chunks after the deletion = %d, want none", n)
	}
}

// TestStoredFilesAreEncrypted: the files of the server have neither the bytes nor the names of files.
func TestStoredFilesAreEncrypted(t *testing.T) {
	t.Parallel()
	for name, isPlain := range map[string]bool{"encrypted": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, streamtest.ServerAt(t, dir), files.Options{}, isPlain)
			put(t, s, files.Upload{Tenant: "acme", Name: "the-secret-name"}, "before the-secret-content after")
			for _, text := range []string{"the-secret-name", "the-secret-content"} {
				if has := contains(t, dir, text); has != isPlain {
					t.Errorf("the directory has %q = %v, want %v", text, has, isPlain)
				}
			}
		})
	}
}

// contains reports whether a file of a directory has a text.
func contains(t *testing.T, dir, text string) (has bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		has = has || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return has
}

// TestPagesOfEqualTimes: pages have each file once, also if several were uploaded at the same time.
func TestPagesOfEqualTimes(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, true)
	now := time.Now().UTC()
	var want []string
	for i := range 5 {
		f := put(t, s, files.Upload{Tenant: "acme", Owner: "ann"}, "text")
		s.SetCreatedAt(t, f, now.Add(time.Duration(i/3))) // 3 files, and 2 a nanosecond later
		want = append(want, f.ID)
	}
	put(t, s, files.Upload{Tenant: "acme", Owner: "bob"}, "text")
	x := index(t, s)
	var got []string
	for after := ""; ; {
		rest := x.List("acme", "ann", after)
		if len(rest) == 0 {
			break
		}
		got, after = append(got, rest[0].ID), rest[0].Position()
		if !files.IsPosition(after) {
			t.Fatalf("%q is no position", after)
		}
	}
	if len(got) != len(want) || !slices.Contains(want[3:], got[0]) || !slices.Contains(want[3:], got[1]) {
		t.Fatalf("pages = %v, want all of %v, the last two first", got, want)
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("no page has %s", id)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, true)
	pdf, html := "%PDF-1.7\n", "<!DOCTYPE html><script>alert(1)</script>"
	for _, tt := range []struct{ declared, content, want string }{
		{"", pdf, "application/pdf"},
		{"image/png", pdf, "application/pdf"},
		{"image/png", html, "text/html"},
		{"text/plain", html, "text/plain"},
		{"text/markdown", "# Title", "text/markdown"},
		{"text/html", "no markup", "text/plain"},
		{"application/json", `{"a":1}`, "application/json"},
		{"application/x-parquet", "\x01\x02\x03", "application/x-parquet"},
		{"image/png", "\x01\x02\x03", "application/octet-stream"},
		{"text/html", "\x01\x02\x03", "application/octet-stream"},
		{"no type", "text", "text/plain"},
		{"application/x-www-form-urlencoded", "\x01\x02\x03", "application/octet-stream"},
	} {
		if f := put(t, s, files.Upload{Tenant: "acme", Type: tt.declared}, tt.content); f.Type != tt.want {
			t.Errorf("%q declared as %q: got %q, want %q", tt.content, tt.declared, f.Type, tt.want)
		}
	}
}

// TestLostAcknowledgement: an upload whose chunk is never acknowledged fails soon, and does not keep its client
// waiting.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	s.LoseAcks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	if _, err := s.Put(ctx, files.Upload{Tenant: "acme", Body: strings.NewReader("a")}); !errors.Is(err, stream.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("put: got %v, want %v", err, stream.ErrUnavailable)
	}
}

// TestConflictInReplicatedBucket: a change that a replicated bucket refuses, because another one is on the
// way to the replicas, is made again. An upload that another request continues is refused as such.
func TestConflictInReplicatedBucket(t *testing.T) {
	t.Parallel()
	s := open(t, streamtest.Server(t), files.Options{}, false)
	f, err := s.Put(t.Context(), files.Upload{Tenant: "acme", Owner: "ann", Body: strings.NewReader("a")})
	if err != nil {
		t.Fatal(err)
	}
	s.Contend()
	if err := s.Attach(t.Context(), "acme", f.ID, "t1"); err != nil {
		t.Errorf("attach during another change: %v, want that it succeeds", err)
	}
	u := create(t, s, "b.png", 1)
	s.Contend()
	if _, err := s.Append(t.Context(), u, strings.NewReader("b")); !errors.Is(err, files.ErrUploadChanged) {
		t.Errorf("append during another change: %v, want ErrUploadChanged", err)
	}
}
