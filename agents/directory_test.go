package agents_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

func TestShippedAgents(t *testing.T) {
	t.Parallel()
	shipped, err := agents.LoadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range shipped.Agents {
		got[d.Name] = d.Model
		if diff := cmp.Diff([]string{"calculate", "current_time"}, d.Tools); diff != "" {
			t.Errorf("tools of %s (-want +got):\n%s", d.Name, diff)
		}
		if d.Description == "" || d.Instructions == "" {
			t.Errorf("%s: got no description or no instructions, want both", d.Name)
		}
	}
	want := map[string]string{"assistant": "openai/gpt-5-mini", "demo": "scripted/demo", "think": "scripted/think"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models by name (-want +got):\n%s", diff)
	}
}

func TestLoadDir(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"1.yaml":            "name: zebra\nmodel: p/m\n",
		"2.yml":             "name: ant\nmodel: p/m\n---\nkind: tool\nname: cow\nhttp: {method: GET, url: x}\n---\nkind: mcp\nname: ant\nurl: x\n",
		"4.yaml":            "kind: tool\nname: yak\nhttp: {method: GET, url: x}\n",
		".hidden.yaml":      "not read: true\n",
		"notes.md":          "not read",
		"below/a/b/3.yaml":  "name: owl\nmodel: p/m\n",
		"folder.yaml/4.txt": "not read",

		".hidden/5.yaml":              "not read: true\n",
		"node_modules/x/6.yaml":       "not read: true\n",
		"below/node_modules/x/7.yaml": "not read: true\n",
	})
	if err := os.Symlink(filepath.Join(folder(t, map[string]string{"x": "name: bee\nmodel: p/m\n"}), "x"), filepath.Join(dir, "3.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "below", "circle")); err != nil {
		t.Fatal(err)
	}
	found, err := agents.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range found.Agents {
		got = append(got, d.Name)
	}
	for _, tool := range found.Tools {
		got = append(got, tool.Name+" at "+filepath.Base(tool.Position.String()))
	}
	for _, s := range found.Servers {
		got = append(got, s.Name+" at "+filepath.Base(s.Position.String()))
	}
	want := []string{"ant", "bee", "owl", "zebra", "cow at 2.yml:4", "yak at 4.yaml:1", "ant at 2.yml:8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestLoadDirErrors(t *testing.T) {
	t.Parallel()
	t.Run("all files", func(t *testing.T) {
		t.Parallel()
		dir := folder(t, map[string]string{
			"a.yaml":   "name: a\nmodel: p/m\nmodell: x\n",
			"b.yaml":   "name: b\n",
			"c.yaml":   "name: c\nmodel: p/m\n",
			"d.yml":    "name: c\nmodel: p/m\n---\nkind: tool\nname: d\nhttp: {method: GET, url: x}\n---\nname: d\nkind: tool\nhttp: {method: GET, url: y}\n",
			"f/g.yaml": "name: c\nmodel: p/m\n",
			"e.yml":    "name: e\nmodel: p/m\n---\nkind: mcp\nname: e\n---\nkind: tol\nname: e\nmodel: p/m\n",
		})
		_, err := agents.LoadDir(dir)
		if err == nil {
			t.Fatal("LoadDir: got no error, want one")
		}
		want := `DIR/a.yaml:3: unknown key "modell" (did you mean "model"?)
DIR/b.yaml:1: model is missing
DIR/d.yml:1: name "c" is taken by DIR/c.yaml:1
DIR/d.yml:8: name "d" is taken by DIR/d.yml:4
DIR/e.yml:4: url or command is missing
DIR/e.yml:7: kind must be agent, tool, mcp, script, not "tol"
DIR/f/g.yaml:1: name "c" is taken by DIR/c.yaml:1`
		if diff := cmp.Diff(want, strings.ReplaceAll(err.Error(), dir, "DIR")); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
	t.Run("absent", func(t *testing.T) {
		t.Parallel()
		_, err := agents.LoadDir(filepath.Join(t.TempDir(), "agents"))
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "agents folder: ") {
			t.Errorf("got %v, want the folder's absence", err)
		}
	})
	t.Run("not a folder", func(t *testing.T) {
		t.Parallel()
		_, err := agents.LoadDir("demo.yaml")
		if err == nil || err.Error() != "agents folder: demo.yaml is not a folder" {
			t.Errorf("LoadDir of a file: got %v, want that it is not a folder", err)
		}
	})
	t.Run("dangling link", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.Symlink("nowhere", filepath.Join(dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		if _, err := agents.LoadDir(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want the file's absence", err)
		}
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		found, err := agents.LoadDir(t.TempDir())
		if err != nil || len(found.Agents)+len(found.Tools)+len(found.Servers) != 0 {
			t.Errorf("got %v, %v, want nothing", found, err)
		}
	})
}

// folder writes files to a folder, and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestExamples: the definitions of the examples are valid, and need no key.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples := filepath.Join("..", "examples")
	entries, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		dir := filepath.Join(examples, entry.Name())
		found, err := agents.LoadDir(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, a := range found.Agents {
			name, scripted := strings.CutPrefix(a.Model, "scripted/")
			if a.Model == "" { // it is on another server, or only names other agents
				continue
			}
			if !scripted || !slices.ContainsFunc(found.Scripts, func(s *agents.Script) bool { return s.Name == name }) {
				t.Errorf("%s: agent %s has the model %s, want a script of the folder", dir, a.Name, a.Model)
			}
		}
	}
}
