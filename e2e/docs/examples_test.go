package docs

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestExampleRefund: the refund example asks for approval, everything is killed, and the approver
// answers.
func TestExampleRefund(t *testing.T) {
	t.Parallel()
	const runs = "/v1/agents/refund/runs"
	shop := kit.StartBookshop(t)
	p := kit.StartExample(t, "refund", "http://127.0.0.1:8090", shop.URL)
	question := kit.UserMessage("Please refund order A-1001.")

	// A client of each generation continues after its page was reloaded.
	for _, g := range kit.Generations {
		thread := kit.NewThread()
		asked := g.Drive(t, p, kit.Script{URL: p.URL(runs), ThreadID: thread, Messages: []kit.Message{question}, Runs: []kit.ScriptedRun{{RunID: "r1"}}})
		had := asked.Finish(t)[0].Messages
		finished := asked.Events(0, "RUN_FINISHED")
		q := kit.InterruptsOf(t, []kit.Event{{Data: finished[len(finished)-1]}})
		p.Kill()
		p.Start(t)
		resume := []any{map[string]any{"interruptId": q[0].ID, "status": "resolved", "payload": map[string]any{"approved": false, "reason": "it was read"}}}
		then := g.Drive(t, p, kit.Script{URL: p.URL(runs), ThreadID: thread, Messages: had, Runs: []kit.ScriptedRun{{RunID: "r2", Parameters: map[string]any{"resume": resume}}}})
		last := then.Finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.Contains(text, "it was read") {
			t.Errorf("%s: answer after the rejection = %q, want text with %q", g.Name, text, "it was read")
		}
	}
	if got := shop.Refunds(t); len(got) != 0 {
		t.Errorf("refunds without approval = %v, want none", got)
	}

	// The commands of the page.
	in := kit.NewInput(question.Content)
	q := kit.InterruptsOf(t, p.RunAgent(t, runs, in))
	p.Kill()
	p.Start(t)
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, q[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	small := kit.NewInput("Please refund order A-1002.")
	messages := kit.ShownMessages(t, small.Messages, p.RunAgent(t, runs, small))
	if got := shop.Refunds(t); !slices.Equal(got, []float64{80, 12.5}) {
		t.Errorf("refunds = %v, want 80 and 12.5", got)
	}
	if text := messages[len(messages)-1].Content; !strings.Contains(text, "A Pocket Guide to Tea") || !strings.Contains(text, `"amount":12.5`) {
		t.Errorf("answer without approval = %q, want the book and the amount", text)
	}
}

// showForm is the client tool of the form.
var showForm = map[string]any{"tools": []any{map[string]any{
	"name": "show_form", "description": "Shows a form.", "parameters": map[string]any{"type": "object"},
}}}

const booked = "I have booked a table for 4 on Friday, for Ada."

// TestExampleForm: the form example asks with a form, everything is killed, and the user fills it
// in.
func TestExampleForm(t *testing.T) {
	t.Parallel()
	const runs = "/v1/agents/form/runs"
	p := kit.StartExample(t, "form")
	for _, g := range kit.Generations {
		s := kit.Script{
			URL: p.URL(runs), ThreadID: kit.NewThread(), Messages: []kit.Message{kit.UserMessage("I would like a table.")},
			Runs: []kit.ScriptedRun{{RunID: "r1", Parameters: showForm}},
		}
		s.Messages = g.Drive(t, p, s).Finish(t)[0].Messages
		p.Kill()
		p.Start(t)
		s.URL = p.URL(runs)
		s.Runs = []kit.ScriptedRun{{RunID: "r2", Parameters: showForm, Answer: map[string]string{"show_form": `{"date":"Friday","guests":"4","name":"Ada"}`}}}
		last := g.Drive(t, p, s).Finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.HasPrefix(text, booked) {
			t.Errorf("%s: answer = %q, want prefix %q", g.Name, text, booked)
		}
	}

	// The example's own client, which is killed, too.
	thread := kit.NewThread()
	p.Threads.Add(thread)
	guest := startForm(t, p.URL(runs), thread)
	guest.answer(t, "You:", "I would like a table.")
	guest.answer(t, "On which day?", "Friday")
	guest.kill()
	p.Kill()
	p.Start(t)
	guest = startForm(t, p.URL(runs), thread)
	for _, line := range [][2]string{{"On which day?", "Friday"}, {"For how many?", "4"}, {"Under which name?", "Ada"}} {
		guest.answer(t, line[0], line[1])
	}
	guest.until(t, booked)
	if err := guest.finish(); err != nil {
		t.Error(err)
	}
}

// formClient is a running form.mjs.
type formClient struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	heard  string
}

// startForm starts the client of the example form.
func startForm(t *testing.T, args ...string) *formClient {
	t.Helper()
	dir := filepath.Join("..", "examples", "form")
	if err := kit.Install(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	cmd := exec.CommandContext(ctx, "node", append([]string{"form.mjs"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // fails after finish
	})
	return &formClient{cmd: cmd, stdin: stdin, stdout: stdout}
}

// until reads until a text has arrived.
func (g *formClient) until(t *testing.T, text string) {
	t.Helper()
	for buf := make([]byte, 1000); !strings.Contains(g.heard, text); {
		n, err := g.stdout.Read(buf)
		g.heard += string(buf[:n])
		if err != nil && !strings.Contains(g.heard, text) {
			t.Fatalf("stream ends with %v, want %q after %q", err, text, g.heard)
		}
	}
}

// answer answers a question.
func (g *formClient) answer(t *testing.T, question, answer string) {
	t.Helper()
	g.until(t, question)
	if _, err := io.WriteString(g.stdin, answer+"\n"); err != nil {
		t.Fatal(err)
	}
}

// kill kills the client.
func (g *formClient) kill() { _ = g.cmd.Process.Kill() }

// finish reads the rest of the output and waits until the program exits.
func (g *formClient) finish() error {
	_, _ = io.Copy(io.Discard, g.stdout)
	return g.cmd.Wait()
}

// TestExampleResearch: the answers of the research example come from an MCP server program of the
// example.
func TestExampleResearch(t *testing.T) {
	t.Parallel()
	const runs, fact = "/v1/agents/research/runs", "tannins dissolve more slowly"
	p := kit.StartExample(t, "research", "bin/library", kit.BuildExample(t, "research/library"))
	question := kit.UserMessage("Why does tea turn bitter?")
	for _, g := range kit.Generations {
		d := g.Drive(t, p, kit.Script{URL: p.URL(runs), Messages: []kit.Message{question}, Runs: []kit.ScriptedRun{{RunID: "r1"}}})
		last := d.Finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.Contains(text, fact) {
			t.Errorf("%s: answer = %q, want text with %q", g.Name, text, fact)
		}
	}
	in := kit.NewInput(question.Content)
	f := p.FollowAgent(t, runs, in)
	f.UntilContent(t, 3)
	p.Kill()
	p.Start(t)
	f.Finish(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if last := messages[len(messages)-1]; !strings.Contains(last.Content, fact) || len(messages) != 6 {
		t.Errorf("messages of the viewer of the killed run = %+v, want 6 with %q", messages, fact)
	}
}
