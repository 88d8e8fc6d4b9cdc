package cli

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCutExportFails: the command writes a complete export, and fails for one without a manifest
// that fits. A file then stays as it was.
func TestCutExportFails(t *testing.T) {
	t.Parallel()
	lines := "{\"kind\":\"thread\",\"threadId\":\"t1\"}\n{\"kind\":\"state\",\"threadId\":\"t1\",\"state\":{}}\n"
	manifest := fmt.Sprintf("{\"kind\":\"manifest\",\"subject\":\"ann\",\"counts\":{\"thread\":1,\"state\":1},\"sha256\":\"%x\"}\n", sha256.Sum256([]byte(lines)))
	for name, tt := range map[string]struct {
		body string
		code int
	}{
		"complete":              {lines + manifest, 0},
		"no manifest":           {lines, 1},
		"nothing":               {"", 1},
		"a part of a line":      {lines + manifest[:20], 1},
		"a missing line":        {strings.SplitAfter(lines, "\n")[1] + manifest, 1},
		"a changed line":        {strings.Replace(lines, "t1", "t2", 1) + manifest, 1},
		"lines after the end":   {lines + manifest + lines, 1},
		"no lines but an error": {"internal error", 1},
	} {
		environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
			"GET /v1/subjects/ann/export": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.body)) },
		})
		if got := run(t, environ, "", "subjects", "export", "ann"); got.code != tt.code || tt.code == 0 && got.out != tt.body {
			t.Errorf("%s: exit code %d with %q, want %d", name, got.code, got.out+got.errOut, tt.code)
		} else if tt.code != 0 && !strings.Contains(got.errOut, "export is not complete") {
			t.Errorf("%s: error %q, want that the export is not complete", name, got.errOut)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "ann.ndjson")
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "before"
		if tt.code == 0 {
			want = tt.body
		}
		got := run(t, environ, "", "subjects", "export", "ann", "--output", file)
		content, err := os.ReadFile(file)
		if got.code != tt.code || string(content) != want || err != nil {
			t.Errorf("%s: exit code %d, the file has %q (%v), want %d and %q", name, got.code, content, err, tt.code, want)
		}
		if files, err := os.ReadDir(dir); len(files) != 1 || err != nil {
			t.Errorf("%s: %d files are left (%v), want 1", name, len(files), err)
		}
	}
}

// TestExportIsPrivate: only the owner may read the file of an export, also if it existed.
func TestExportIsPrivate(t *testing.T) {
	t.Parallel()
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/subjects/ann/export": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "{\"kind\":\"manifest\",\"sha256\":\"%x\"}\n", sha256.Sum256(nil))
		},
	})
	file := filepath.Join(t.TempDir(), "ann.ndjson")
	for _, before := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(file, 0o644) }, //nolint:gosec // because the export must restrict it
	} {
		if err := before(); err != nil {
			t.Fatal(err)
		}
		run(t, environ, "", "subjects", "export", "ann", "--output", file).want(t, 0, "", "")
		if info, err := os.Stat(file); err != nil {
			t.Fatal(err)
		} else if info.Mode() != 0o600 {
			t.Errorf("the mode of the file is %v, want 0600", info.Mode())
		}
	}
}

// TestDeletionListsEveryKind: the report of a deletion, and of a dry run, has each thing that it deletes.
func TestDeletionListsEveryKind(t *testing.T) {
	t.Parallel()
	const deleted = `"deleted":{"threads":["t1"],"completed":["t2"],"schedules":["s1"],"shares":["t3"],"files":["file_a"],"uploads":["upload_a"],"sessions":2}`
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"DELETE /v1/subjects/ann":             respondWith(`{"subject":"ann",` + deleted + `}`),
		"DELETE /v1/subjects/ann?dryRun=true": respondWith(`{"subject":"ann","dryRun":true,` + deleted + `}`),
	})
	rows := [][2]string{{"thread", "t1"}, {"interrupted deletion", "t2"}, {"schedule", "s1"}, {"share", "t3"}, {"file", "file_a"}, {"upload", "upload_a"}, {"sessions", "2"}}
	for result, args := range map[string][]string{"deleted": nil, "would be deleted": {"--dry-run"}} {
		got := run(t, environ, "", append([]string{"subjects", "delete", "ann"}, args...)...)
		for _, row := range rows {
			line := regexp.MustCompile(`(?m)^` + row[0] + ` +` + row[1] + ` +` + result + ` *$`)
			if got.code != 0 || !line.MatchString(got.out) {
				t.Errorf("exit %d, %s%s\nwant a row for the %s %s: %s", got.code, got.out, got.errOut, row[0], row[1], result)
			}
		}
	}
}
