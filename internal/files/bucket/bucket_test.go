package bucket_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/files/bucket"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestDirectory: files are objects in a directory, with ranges. A failed upload and a deletion leave
// nothing.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := bucket.Open(t.Context(), "file://"+dir+"?no_tmp_dir=true&metadata=skip")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	store, err := files.Open(t.Context(), streamtest.OpenOn(t, streamtest.Server(t)), files.Options{Storage: b})
	if err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), iotest.ErrReader(errors.New("broken")))
	if _, err := store.Put(t.Context(), files.Upload{Tenant: "acme", Body: broken}); err == nil {
		t.Error("a broken upload has no error")
	}
	wantObjects(t, dir, 0)
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	f, err := store.Put(t.Context(), files.Upload{Tenant: "acme", Body: bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	wantObjects(t, dir, 1)
	c, err := store.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Seek(500_005, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil || !bytes.Equal(rest, content[500_005:]) {
		t.Errorf("range has %d bytes (%v), want %d", len(rest), err, len(content)-500_005)
	}
	if err := store.DeleteUnused(t.Context(), "acme", f.ID); err != nil {
		t.Fatal(err)
	}
	wantObjects(t, dir, 0)
	if err := b.Remove(t.Context(), "none"); err != nil {
		t.Errorf("removal of an unknown object: %v", err)
	}
}

// TestPartsInDirectory: what arrives of a request that breaks off is an object, until the upload is a
// file.
func TestPartsInDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := bucket.Open(t.Context(), "file://"+dir+"?no_tmp_dir=true&metadata=skip")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	store, err := files.Open(t.Context(), streamtest.OpenOn(t, streamtest.Server(t)), files.Options{Storage: b})
	if err != nil {
		t.Fatal(err)
	}
	u, err := store.CreateUpload(t.Context(), files.Upload{Tenant: "acme"}, 8)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if n, err := store.Append(t.Context(), u, io.MultiReader(strings.NewReader("text"), iotest.ErrReader(broken))); n != 4 || !errors.Is(err, broken) {
		t.Errorf("append = %d, %v, want 4 and the failure of the body", n, err)
	}
	wantObjects(t, dir, 1)
	if n, err := store.Append(t.Context(), u, strings.NewReader("more")); n != 4 || err != nil {
		t.Errorf("append = %d, %v, want 4", n, err)
	}
	wantObjects(t, dir, 2)
	if _, err := store.FinishUpload(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	wantObjects(t, dir, 1)
	f, err := store.Find(t.Context(), "acme", u.FileID())
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Open(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); string(got) != "textmore" || err != nil {
		t.Errorf("file = %q, %v, want %q", got, err, "textmore")
	}
}

// wantObjects checks the number of files in a directory.
func wantObjects(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("objects = %d, want %d", len(entries), want)
	}
}

// TestSilentCloud: a cloud that accepts requests and does not answer fails every operation.
func TestSilentCloud(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	cloud := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(cloud.Close)
	t.Cleanup(func() { close(held) })
	b, err := bucket.Open(t.Context(), "s3://files?region=eu-central-1&use_path_style=true&anonymous=true&endpoint="+cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.SetAnswerTime(50 * time.Millisecond)
	large := make([]byte, 40<<20) // more than the SDK buffers
	for operation, err := range map[string]error{
		"write":          b.Write(t.Context(), "a", strings.NewReader("small")),
		"write in parts": b.Write(t.Context(), "a", bytes.NewReader(large)),
		"open":           func() error { _, err := b.Open(t.Context(), "a", 0); return err }(),
		"remove":         b.Remove(t.Context(), "a"),
	} {
		if !errors.Is(err, stream.ErrUnavailable) || !strings.Contains(err.Error(), "the cloud does not answer") {
			t.Errorf("%s: got %v, want %v with its cause", operation, err, stream.ErrUnavailable)
		}
	}
}
