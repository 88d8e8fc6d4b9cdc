package agents

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// clerk is a file with an agent and the script of its model. A run adds twice, and then says what
// the test inserts.
const clerk = `name: clerk
model: scripted/clerk
tools: [calculate]
APPROVALS
---
kind: script
name: clerk
turns:
  - steps:
      - calls: [{tool: calculate, arguments: {expression: "1+1"}}]
      - calls: [{tool: calculate, arguments: {expression: "2+2"}}]
      - say: SAYS
`

// save replaces a file in the way of most editors: it writes another file and renames it.
func save(t *testing.T, path, text string) {
	t.Helper()
	draft := filepath.Join(filepath.Dir(path), ".draft")
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, path); err != nil {
		t.Fatal(err)
	}
}

// wantProblems reads from the list of agents which definitions are not published, and why: one text
// with each part.
func wantProblems(t *testing.T, p *kit.Perdure, parts ...string) {
	t.Helper()
	var list struct{ Problems []string }
	p.GetJSON(t, "/v1/agents", &list)
	if len(list.Problems) != len(parts) {
		t.Fatalf("problems = %q, want those with %q", list.Problems, parts)
	}
	for i, part := range parts {
		if !strings.Contains(list.Problems[i], part) {
			t.Errorf("problem = %q, want it with %q", list.Problems[i], part)
		}
	}
}

// TestDevPublishesChangedFiles: perdure dev starts without its folder of definitions. It publishes
// a file when it appears and when it changes, also in a new subfolder, and names the line of a
// mistake. A waiting run keeps its revision.
func TestDevPublishesChangedFiles(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = filepath.Join(t.TempDir(), "new", "agents")
	file := filepath.Join(p.Agents, "clerk.yaml")
	text := func(approvals, says string) string {
		return strings.NewReplacer("APPROVALS", approvals, "SAYS", says).Replace(clerk)
	}
	p.Start(t)
	t.Cleanup(func() { // not inspected: the runs stay waiting
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	p.Output.Await(t, p.Agents+" does not exist")

	if err := os.MkdirAll(p.Agents, 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, file, text("approvals: [{tools: [calculate]}]", "First."))
	p.Output.Await(t, "published clerk, revision ")
	waiting := kit.NewThreadOf(p)
	p.StartCommand(t, "run", "clerk", "Add.", "--thread", waiting).Finish(t, 3)

	save(t, file, text("approvals: nothing", "Second."))
	p.Output.Await(t, file+":4: ")
	p.Output.Await(t, "The former definitions stay until this is corrected.")
	wantProblems(t, p, file+":4: ")
	p.StartCommand(t, "run", "clerk", "Add.", "--thread", kit.NewThreadOf(p)).Finish(t, 3)

	save(t, file, text("", "Second."))
	if between := p.Output.Await(t, "published clerk, revision "); !strings.Contains(between, "restarted the worker") {
		t.Errorf("output = %q, want no restart of the worker", between)
	}
	wantProblems(t, p)
	if said := p.StartCommand(t, "run", "clerk", "Add.", "--thread", kit.NewThreadOf(p)).Finish(t, 0); said != "Second.\n" {
		t.Errorf("answer of the new revision = %q, want %q", said, "Second.\n")
	}
	events := p.FollowThread(t, kit.Input{ThreadID: waiting, RunID: "none"})
	first := events.UntilInterrupt(t, "tool_call")[0]
	if status, answer := kit.Decide(t, p.Endpoint, waiting, first.ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	if second := events.UntilInterrupt(t, "tool_call")[0]; second.ID == first.ID {
		t.Error("second interrupt has the ID of the first, want another")
	}

	below := filepath.Join(p.Agents, "team", "night")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	guard := filepath.Join(below, "guard.yaml")
	save(t, guard, "name: guard\nmodel: scripted/clerk\n")
	p.Output.Await(t, "published guard, revision ")
	save(t, guard, "name: clerk\nmodel: scripted/clerk\n")
	p.Output.Await(t, guard+`:1: name "clerk" is taken by `+file+":1")
	if err := os.RemoveAll(filepath.Dir(below)); err != nil {
		t.Fatal(err)
	}
	p.Output.Await(t, "guard stays published, although no file defines it")

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.Output.Await(t, "clerk stays published, although no file defines it")
	if list := p.StartCommand(t, "agents").Finish(t, 0); !strings.Contains(list, "clerk") {
		t.Errorf("agents:\n%s\nwant clerk", list)
	}
}
