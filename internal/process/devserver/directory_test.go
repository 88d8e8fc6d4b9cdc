package devserver

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"below a file":                {func(t *testing.T, dir string) { write(t, filepath.Dir(dir), "") }, "not a directory"},
		"is a file":                   {func(t *testing.T, dir string) { write(t, dir, "") }, "not a directory"},
		"another program's directory": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "main.go"), "package x") }, `has "main.go" and is not a Perdure data directory`},
		"newer format":                {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "format"), "perdure-data 2") }, "format"},
		"damaged database":            {func(t *testing.T, dir string) { ours(t, dir, "temporal.db", strings.Repeat("not sqlite ", 1000)) }, "not a database"},
		"another database":            {anotherDatabase, "not a Temporal database"},
		"nats is not a tree":          {func(t *testing.T, dir string) { ours(t, dir, "nats", "") }, "NATS"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "parent", "data")
			tt.prepare(t, dir)
			_, err := Start(testContext(t), Options{Data: dir})
			if _, ok := errors.AsType[*DirectoryError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Start = %v, want a DirectoryError with %q", err, tt.want)
			}
		})
	}
}

func TestForeignDirectoryIsNotChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package x")
	if _, err := Start(testContext(t), Options{Data: dir}); err == nil {
		t.Fatal("Start in a directory of another program: got no error, want one")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v (%v), want main.go alone", entries, err)
	}
}

func TestHiddenFilesAreIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".gitignore"), "*")
	write(t, filepath.Join(dir, "lost+found", "x"), "")
	lock, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.release(); err != nil {
		t.Error(err)
	}
}

// TestLockHoldsWithoutReference: the lock remains although the program keeps no reference to its
// Server.
func TestLockHoldsWithoutReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := lockDir(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 { // a finalizer runs after the cycle that found its object
		runtime.GC()
	}
	again, err := lockDir(dir)
	if _, ok := errors.AsType[*LockedError](err); !ok {
		t.Errorf("lock = %v, %v; want a LockedError", again, err)
	}
}

func TestInvalidOwnersAreIgnored(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ line, want string }{
		"complete":  {"1234 perdure dev\n", "data directory D is in use by process 1234 (perdure dev)"},
		"empty":     {"", "data directory D is in use by another process"},
		"something": {"no pid here", "data directory D is in use by another process"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lock")
			write(t, path, tt.line)
			if got := readOwner("D", path).Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := readOwner("D", filepath.Join(t.TempDir(), "absent")); got.PID != 0 {
		t.Errorf("owner of an absent file = %v, want none", got)
	}
}

// write writes a file.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ours writes a file into a directory so that it is recognized as a data directory.
func ours(t *testing.T, dir, name, content string) {
	t.Helper()
	write(t, filepath.Join(dir, "format"), format)
	write(t, filepath.Join(dir, name), content)
}

// anotherDatabase writes a database of another program.
func anotherDatabase(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "format"), format)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "temporal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE songs (title TEXT)"); err != nil {
		t.Fatal(err)
	}
}
