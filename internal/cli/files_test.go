//go:build unix

package cli

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDownloadsKeepTheirTarget: a download replaces the content of a file, and neither its mode, nor the link
// to it, nor a pipe. A download that is cut changes nothing.
func TestDownloadsKeepTheirTarget(t *testing.T) {
	t.Parallel()
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/files/file_a": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "new") },
		"GET /v1/files/file_b": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "cut")
		},
	})
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	get := func(id, name string) {
		run(t, environ, "", "file", "get", id, "--output", path(name)).want(t, 0, "", "")
	}
	wantFile := func(name, content string, mode fs.FileMode) {
		t.Helper()
		info, err := os.Lstat(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path(name)); string(got) != content || info.Mode() != mode || err != nil {
			t.Errorf("%s has %q and the mode %v, %v, want %q and %v", name, got, info.Mode(), err, content, mode)
		}
	}
	created, err := os.Create(path("created"))
	if err != nil {
		t.Fatal(err)
	}
	defer created.Close() //nolint:errcheck // it is empty
	info, err := created.Stat()
	if err != nil {
		t.Fatal(err)
	}
	get("file_a", "absent")
	wantFile("absent", "new", info.Mode())

	for _, name := range []string{"script", "target"} {
		if err := os.WriteFile(path(name), []byte("earlier"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), 0o750); err != nil { //nolint:gosec // because the mode must not be that of a new file
			t.Fatal(err)
		}
	}
	get("file_a", "script")
	wantFile("script", "new", 0o750)

	for link, target := range map[string]string{"link": "target", "dangling": "missing"} {
		if err := os.Symlink(target, path(link)); err != nil {
			t.Fatal(err)
		}
		get("file_a", link)
		if got, err := os.Readlink(path(link)); got != target || err != nil {
			t.Errorf("%s links to %q, %v, want %q", link, got, err, target)
		}
	}
	wantFile("target", "new", 0o750)
	wantFile("missing", "new", info.Mode())

	for _, name := range []string{"script", "link"} {
		if got := run(t, environ, "", "file", "get", "file_b", "--output", path(name)); got.code == 0 {
			t.Errorf("a download to %s that is cut has succeeded", name)
		}
	}
	wantFile("script", "new", 0o750)
	wantFile("target", "new", 0o750)

	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path("pipe"), os.O_RDWR, 0) // does not wait for the writer
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close() //nolint:errcheck // it was read
	get("file_a", "pipe")
	if info, err := os.Lstat(path("pipe")); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("the pipe is %v, %v, want a pipe", info.Mode(), err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(pipe, got); string(got) != "new" || err != nil {
		t.Errorf("the pipe has %q, %v, want the download", got, err)
	}
	if files, err := filepath.Glob(path(".perdure-*")); len(files) != 0 || err != nil {
		t.Errorf("temporary files: %v, %v, want none", files, err)
	}
}
