package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// startExample starts a process with an example's agents, in which texts are replaced in pairs,
// such as where something is.
func startExample(t *testing.T, name string, replaced ...string) *perdure {
	t.Helper()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents = t.TempDir()
	file := filepath.Join("..", "examples", name, "agents", name+".yaml")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(string(body), replaced[i]) {
			t.Fatalf("%s has no %s", file, replaced[i])
		}
	}
	text := strings.NewReplacer(replaced...).Replace(string(body))
	if err := os.WriteFile(filepath.Join(p.agents, name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.keep(t)
	p.start(t)
	return p
}

// buildExample builds a program of an example.
func buildExample(t *testing.T, folder string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := execute("..", "go", "build", "-o", file, "./examples/"+folder); err != nil {
		t.Fatal(err)
	}
	return file
}

// bookshop is the refund example's shop.
type bookshop struct{ url string }

func openBookshop(t *testing.T) bookshop {
	t.Helper()
	var s bookshop
	var said output
	p, err := launch(t.Context(), exec.Command(buildExample(t, "refund/shop"), "-addr", "127.0.0.1:0"), &said, func(line []byte) (ok bool) {
		s.url, ok = strings.CutPrefix(string(line), "The shop is open: ")
		return ok
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// refunds returns what the shop has paid back.
func (s bookshop) refunds(t *testing.T) (amounts []float64) {
	t.Helper()
	resp, err := http.Get(s.url + "/refunds")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var refunds []struct {
		Amount float64 `json:"amount"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&refunds); err != nil {
		t.Fatal(err)
	}
	for _, r := range refunds {
		amounts = append(amounts, r.Amount)
	}
	return amounts
}

// The refund example: a person is asked, everything is killed, and the person answers.
func TestExampleRefund(t *testing.T) {
	t.Parallel()
	const runs = "/v1/agents/refund/runs"
	shop := openBookshop(t)
	p := startExample(t, "refund", "http://127.0.0.1:8090", shop.url)
	question := user("Please refund order A-1001.")

	// A client of each generation, which comes back with a page that was loaded anew.
	for _, g := range generations {
		thread := newThread()
		asked := g.drive(t, p, script{URL: p.url(runs), ThreadID: thread, Messages: []message{question}, Runs: []scriptedRun{{RunID: "r1"}}})
		had := asked.finish(t)[0].Messages
		finished := asked.events(0, "RUN_FINISHED")
		q := interruptsOf(t, []event{{Data: finished[len(finished)-1]}})
		p.kill()
		p.start(t)
		resume := []any{map[string]any{"interruptId": q[0].ID, "status": "resolved", "payload": map[string]any{"approved": false, "reason": "it was read"}}}
		then := g.drive(t, p, script{URL: p.url(runs), ThreadID: thread, Messages: had, Runs: []scriptedRun{{RunID: "r2", Parameters: map[string]any{"resume": resume}}}})
		last := then.finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.Contains(text, "it was read") {
			t.Errorf("%s: who was refused is told %q", g.name, text)
		}
	}
	if got := shop.refunds(t); len(got) != 0 {
		t.Errorf("%v was refunded that nobody approved", got)
	}

	// Commands, as the page has them.
	in := newInput(question.Content)
	q := interruptsOf(t, p.runAgent(t, runs, in))
	p.kill()
	p.start(t)
	if status, answer := decide(t, p.endpoint, in.ThreadID, q[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: %d %v", status, answer)
	}
	f := p.followThread(t, in)
	f.untilSuccess(t)
	small := newInput("Please refund order A-1002.")
	messages := show(t, small.Messages, p.runAgent(t, runs, small))
	if got := shop.refunds(t); !slices.Equal(got, []float64{80, 12.5}) {
		t.Errorf("%v was refunded", got)
	}
	if text := messages[len(messages)-1].Content; !strings.Contains(text, "A Pocket Guide to Tea") || !strings.Contains(text, `"amount":12.5`) {
		t.Errorf("who was not asked about is told %q", text)
	}
}

// showForm is the form's tool, as clients bring it.
var showForm = map[string]any{"tools": []any{map[string]any{
	"name": "show_form", "description": "Shows a form.", "parameters": map[string]any{"type": "object"},
}}}

const booked = "I have booked a table for 4 on Friday, for Ada."

// The form example: an agent asks by a form, everything is killed, and the form is filled in.
func TestExampleForm(t *testing.T) {
	t.Parallel()
	const runs = "/v1/agents/form/runs"
	p := startExample(t, "form")
	for _, g := range generations {
		s := script{
			URL: p.url(runs), ThreadID: newThread(), Messages: []message{user("I would like a table.")},
			Runs: []scriptedRun{{RunID: "r1", Parameters: showForm}},
		}
		s.Messages = g.drive(t, p, s).finish(t)[0].Messages
		p.kill()
		p.start(t)
		s.URL = p.url(runs)
		s.Runs = []scriptedRun{{RunID: "r2", Parameters: showForm, Answer: map[string]string{"show_form": `{"date":"Friday","guests":"4","name":"Ada"}`}}}
		last := g.drive(t, p, s).finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.HasPrefix(text, booked) {
			t.Errorf("%s: the guest is told %q", g.name, text)
		}
	}

	// The example's own client, which is killed too.
	thread := newThread()
	p.threads.use(thread)
	guest := startForm(t, p.url(runs), thread)
	guest.say(t, "You:", "I would like a table.")
	guest.say(t, "On which day?", "Friday")
	guest.kill()
	p.kill()
	p.start(t)
	guest = startForm(t, p.url(runs), thread)
	for _, line := range [][2]string{{"On which day?", "Friday"}, {"For how many?", "4"}, {"Under which name?", "Ada"}} {
		guest.say(t, line[0], line[1])
	}
	guest.hear(t, booked)
	if err := guest.wait(); err != nil {
		t.Error(err)
	}
}

// guest is somebody in front of form.mjs.
type guest struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	heard  string
}

func startForm(t *testing.T, args ...string) *guest {
	t.Helper()
	dir := filepath.Join("..", "examples", "form")
	if err := install(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		_ = cmd.Wait() // fails where it was waited for
	})
	return &guest{cmd: cmd, stdin: stdin, stdout: stdout}
}

// hear reads until a text has come.
func (g *guest) hear(t *testing.T, text string) {
	t.Helper()
	for buf := make([]byte, 1000); !strings.Contains(g.heard, text); {
		n, err := g.stdout.Read(buf)
		g.heard += string(buf[:n])
		if err != nil && !strings.Contains(g.heard, text) {
			t.Fatalf("%v, waiting for %q behind %q", err, text, g.heard)
		}
	}
}

// say answers a question.
func (g *guest) say(t *testing.T, question, answer string) {
	t.Helper()
	g.hear(t, question)
	if _, err := io.WriteString(g.stdin, answer+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (g *guest) kill() { _ = g.cmd.Process.Kill() }

// wait reads what else comes and waits for the program's end.
func (g *guest) wait() error {
	_, _ = io.Copy(io.Discard, g.stdout)
	return g.cmd.Wait()
}

// The research example: answers come out of an MCP server that is a program of ours.
func TestExampleResearch(t *testing.T) {
	t.Parallel()
	const runs, fact = "/v1/agents/research/runs", "tannins dissolve more slowly"
	p := startExample(t, "research", "bin/library", buildExample(t, "research/library"))
	question := user("Why does tea turn bitter?")
	for _, g := range generations {
		d := g.drive(t, p, script{URL: p.url(runs), Messages: []message{question}, Runs: []scriptedRun{{RunID: "r1"}}})
		last := d.finish(t)[0].Messages
		if text := last[len(last)-1].Content; !strings.Contains(text, fact) {
			t.Errorf("%s is told %q", g.name, text)
		}
	}
	in := newInput(question.Content)
	f := p.followAgent(t, runs, in)
	f.contents(t, 3)
	p.kill()
	p.start(t)
	f.finish(t)
	messages := show(t, in.Messages, f.events)
	if last := messages[len(messages)-1]; !strings.Contains(last.Content, fact) || len(messages) != 6 {
		t.Errorf("who saw it killed has %+v", messages)
	}
}
