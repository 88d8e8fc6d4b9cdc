package kit

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedRun is a run in a terminal that a documentation page shows.
type recordedRun struct {
	agent, thread, said string // an empty thread is a new one
	output              string
}

var runCommand = regexp.MustCompile(`^perdure run (\w+)(?: --thread (\w+))? "(.*)"$`)

// recordedRuns returns the runs that a page shows.
func recordedRuns(t *testing.T, page string) (runs []recordedRun) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "docs", "guides", "examples", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(body), "```console\n$ ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		command, output, _ := strings.Cut(block, "\n")
		said := runCommand.FindStringSubmatch(command)
		if said == nil {
			if strings.HasPrefix(command, "curl ") {
				continue
			}
			t.Fatalf("%s: got the command %q, want perdure run", page, command)
		}
		runs = append(runs, recordedRun{agent: said[1], thread: said[2], said: said[3], output: output})
	}
	if len(runs) == 0 {
		t.Fatalf("recorded runs of %s: got none, want some", page)
	}
	return runs
}

// CheckRecordedRuns executes the commands of a page and checks that their output is as the page
// shows.
func (p *Perdure) CheckRecordedRuns(t *testing.T, page string) {
	t.Helper()
	threads := map[string]string{}
	for _, r := range recordedRuns(t, page) {
		thread, known := threads[r.thread]
		if !known || r.thread == "" {
			thread = NewThreadOf(p)
			threads[r.thread] = thread
		}
		c := p.StartCommand(t, "run", "--wait", "--thread", thread, r.agent, r.said)
		p.ApproveAll(t, thread, strings.Count(r.output, " waits for a decision: "))
		code := 0
		if strings.Contains(r.output, "the run failed: ") {
			code = 1
		}
		got := c.Finish(t, code) + c.ErrOut.String()
		if diff := cmp.Diff(sortedOutput(r.output), sortedOutput(got)); diff != "" {
			t.Errorf("%s: output of run %s %q (-page +now):\n%s\n%s", page, r.agent, r.said, diff, got)
		}
	}
}

// ApproveAll approves the next n interrupts of a thread.
func (p *Perdure) ApproveAll(t *testing.T, thread string, n int) {
	t.Helper()
	for range n {
		asked := p.AwaitPending(t, "?thread="+thread, thread).Items[0]
		if status, a := Decide(t, p.Endpoint, thread, asked.ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("approve: got %d %v, want %d", status, a, http.StatusOK)
		}
	}
}

var (
	// terminalPrompts matches the prompts at a terminal, which repeat the question.
	terminalPrompts = regexp.MustCompile(`(?m)^\n.*\n\[y\]es, .*\n`)
	// volatileValues matches ids, times and numbers that differ between runs.
	volatileValues = regexp.MustCompile(`\b(run|thread|int)[-_][\w-]+|of thread \S+|R-lamp-[0-9a-f]{6}|\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// sortedOutput returns the lines of an output, sorted: concurrent lines come in any order, and
// without a terminal the answers come last.
func sortedOutput(output string) []string {
	output = volatileValues.ReplaceAllString(terminalPrompts.ReplaceAllString(output, ""), "…")
	lines := strings.Split(strings.TrimSpace(output), "\n")
	slices.Sort(lines)
	return lines
}
