package main

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// TestFilesAndGoAgree: the definitions in files and in Go have the same canonical form. Only the
// tools of the report differ: tools of an MCP server in the file, and Go functions here.
func TestFilesAndGoAgree(t *testing.T) {
	t.Parallel()
	made, err := all()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]*agents.Definition{}
	for _, example := range []string{"report", "desk", "triage", "order"} {
		folder, err := agents.LoadDir("../" + example + "/agents")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range folder.Agents {
			said[d.Name] = d
		}
	}
	if len(made) != len(said) {
		t.Errorf("number of agents in Go = %d, want %d as in files", len(made), len(said))
	}
	for _, d := range made {
		other, ok := said[d.Name]
		if !ok {
			t.Errorf("no file has %s", d.Name)
			continue
		}
		if d.Name == "report" {
			other.Tools = d.Tools
		}
		if got, want := lines(t, d), lines(t, other); got != want {
			t.Errorf("%s in Go:\n%s\nwant as in its file\n%s", d.Name, got, want)
		}
	}
}

// lines returns the definition as text.
func lines(t *testing.T, d *agents.Definition) string {
	t.Helper()
	raw, err := agents.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), ",", ",\n")
}

// TestScriptsOfDocsAreEqual: the scripted model of these agents equals the one in the files.
func TestScriptsOfDocsAreEqual(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report", "desk", "triage", "order"} {
		ours, err := os.ReadFile("scripts/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile("../" + name + "/agents/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(theirs), "---\n"+string(ours)) {
			t.Errorf("script of %s in the docs differs, want that of the file", name)
		}
	}
}
