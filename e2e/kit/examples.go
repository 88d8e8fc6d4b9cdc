package kit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// StartExample starts a process with the agents of an example. Pairs of texts replace parts of
// their definitions, such as addresses.
func StartExample(t *testing.T, name string, replaced ...string) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.Agents = t.TempDir()
	p.AddExample(t, name, replaced...)
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// AddExample copies the definitions of an example to the agents of the process, with replacements as
// for StartExample. A running process publishes them.
func (p *Perdure) AddExample(t *testing.T, name string, replaced ...string) {
	t.Helper()
	example := filepath.Join("..", "examples", name)
	var all strings.Builder
	for file, text := range definitionsIn(t, example) {
		all.WriteString(text)
		copied := filepath.Join(p.Agents, file)
		text = strings.NewReplacer(replaced...).Replace(text)
		if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), os.WriteFile(copied, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(all.String(), replaced[i]) {
			t.Fatalf("definitions of %s: got no %s, want it for the replacement", example, replaced[i])
		}
	}
}

// BuildExample builds a program of an example, and returns its file.
func BuildExample(t *testing.T, folder string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := Build("..", file, "./examples/"+folder); err != nil {
		t.Fatal(err)
	}
	return file
}

// definitionsIn returns the texts of the definitions in a folder, by their paths in it.
func definitionsIn(t *testing.T, root string) map[string]string {
	t.Helper()
	folders, err := agents.FoldersIn(root)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	return texts
}
