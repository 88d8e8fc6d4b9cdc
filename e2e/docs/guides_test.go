package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// guideBlock matches a block of commands or a program of a page, also in a list, and the block of
// output that follows it directly.
var guideBlock = regexp.MustCompile("(?ms)^ *```(sh|js)\n(.*?)^ *```$(?:\n\n```\n(.*?)^```$)?")

// guideFile matches a definition that the page tells the reader to save.
var guideFile = regexp.MustCompile("(?ms)^Save this as `agents/(\\w+\\.yaml)`.*?^```yaml\n(.*?)^```$")

// untestedCommands are the beginnings of commands that need something that the test does not have,
// and why.
var untestedCommands = map[string]string{
	"temporal ":          "the command line of Temporal",
	"PERDURE_DEPLOYMENT": "a worker with a version, which deploy_test.go starts",
	"PERDURE_AUTH=":      "settings of a server, and not a command",
	"OTEL_EXPORTER":      "a collector, which telemetry_test.go starts",
	"make ":              "the checkout; start_test.go and examples_test.go do the same",
	"go ":                "a module of its own, which programs_test.go builds",
	"npm ":               "the examples' clients, which examples_test.go runs",
	"docker ":            "Docker",
	"sh deploy/setup.sh": "Docker; secrets_test.go uses what the script makes",
	"PERDURE_METRICS":    "a second terminal",
	"nats ":              "the command line of NATS",
	"perdure dev":        "the test starts it",
}

// TestGuideCommands: the shell blocks of the guides work as written: every command succeeds. The
// test creates what they name: the thread t1 with an approval or a question of an agent.
func TestGuideCommands(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"concepts/runs", "concepts/streams", "guides/approvals", "guides/deploying", "guides/inbox", "guides/notifications", "guides/questions",
		"guides/schedules", "guides/testing", "guides/authentication", "guides/observability", "guides/client-tools", "guides/pipelines",
		"guides/retention", "guides/troubleshooting", "guides/audit", "guides/authorization", "guides/budgets", "guides/run-trace", "guides/state",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text := readGuide(t, page)
			g := startGuide(t, text)
			blocks := guideBlock.FindAllStringSubmatch(text, -1)
			if len(blocks) == 0 {
				t.Fatal("shell blocks of the page: got none, want some")
			}
			if slices.Contains(threadPages, page) {
				g.runThread()
			}
			for _, block := range blocks {
				g.runBlock(page, block[1], block[2], block[3])
			}
		})
	}
}

// threadPages are the pages whose commands are about the thread thread-1 and its run run-1.
var threadPages = []string{"guides/audit", "guides/authorization", "guides/run-trace"}

// runThread runs run-1 of thread-1 to its end.
func (g *guide) runThread() {
	g.t.Helper()
	in := kit.NewInput(kit.Marked("Good morning."))
	in.ThreadID, in.RunID = "thread-1", "run-1"
	events := g.at.PostAgent(g.t, "/v1/agents/support/runs", in)
	if last := events[len(events)-1]; kit.Outcome(last) != "success" {
		g.t.Fatalf("end of the run = %s, want a success", last.Data)
	}
}

// readGuide returns the text of a guide.
func readGuide(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", filepath.FromSlash(page)+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// guide is a guide's reader: a Perdure with the agents of the guides, and a folder.
type guide struct {
	t    *testing.T
	at   *kit.Perdure
	dir  string
	runs int
	// set are the lines of earlier blocks of the page that set variables.
	set string
	// printed is the output of the last block of commands.
	printed string
}

var setsVariable = regexp.MustCompile(`(?m)^\w+=(?:\S*|\$\(.*\))\n`)

// guideAgent is the agent of the guides, with the tools of the bookshop and a scripted model.
const guideAgent = `name: support
model: scripted/support
tools: [get_order, issue_refund, ask_user]
approvals: [{tools: [issue_refund]}]
---
kind: script
name: support
turns:
  - when: \bask\b
    steps:
      - calls: [{tool: ask_user, arguments: {question: "Where to?", schema: {type: object, required: [city], properties: {city: {type: string}}}}}]
      - say: "To {ask_user}."
  - when: \bA-1001\b
    steps:
      - calls: [{tool: issue_refund, arguments: {orderId: A-1001, amount: 60}}]
      - say: "{issue_refund}"
  - steps: [{say: "Nothing came in."}]
`

// startGuide starts Perdure for the reader of a page, with the definitions that the page has.
func startGuide(t *testing.T, guideText string) *guide {
	t.Helper()
	g := &guide{t: t, dir: t.TempDir()}
	g.at = kit.NewPerdure(filepath.Join(g.dir, "data"), kit.SharedModel)
	g.at.Agents = filepath.Join(g.dir, "agents")
	refund, err := os.ReadFile(filepath.Join("..", "examples", "refund", "agents", "refund.yaml"))
	if err == nil {
		err = os.CopyFS(g.at.Agents, os.DirFS(filepath.Join("..", "agents")))
	}
	for name, text := range map[string]string{
		"refund.yaml":  strings.ReplaceAll(string(refund), "http://127.0.0.1:8090", kit.StartBookshop(t).URL),
		"support.yaml": agentOf(guideText),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(g.at.Agents, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	saveDefinitions(t, g.at.Agents, guideText)
	g.saveRetention(guideText)
	g.at.Start(t)
	t.Cleanup(func() { // not inspected: the guides leave approvals open
		if err := g.at.Stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// agentOf returns the guides' agent. A link for another person needs a rule that names approvers.
func agentOf(guide string) string {
	if !strings.Contains(guide, `"roles": ["finance"]`) {
		return guideAgent
	}
	return strings.Replace(guideAgent, "{tools: [issue_refund]}", "{tools: [issue_refund], approvers: [role:finance]}", 1)
}

// saveDefinitions saves the definitions that a page tells the reader to save.
func saveDefinitions(t *testing.T, folder, text string) {
	t.Helper()
	for _, file := range guideFile.FindAllStringSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(folder, file[1]), []byte(file[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// retentionFile matches the file that a page tells the reader to name in PERDURE_RETENTION_FILE.
var retentionFile = regexp.MustCompile("(?ms)name it in `PERDURE_RETENTION_FILE`:\n\n```yaml\n(.*?)^```$")

// saveRetention gives Perdure the file of times to live that a page has.
func (g *guide) saveRetention(text string) {
	g.t.Helper()
	rules := retentionFile.FindStringSubmatch(text)
	if rules == nil {
		return
	}
	file := filepath.Join(g.dir, "retention.yaml")
	if err := os.WriteFile(file, []byte(rules[1]), 0o600); err != nil {
		g.t.Fatal(err)
	}
	g.at.Env = append(g.at.Env, "PERDURE_RETENTION_FILE="+file)
}

// runBlock runs the commands or the program of a block. A run and a program print what the page
// shows after the block.
func (g *guide) runBlock(page, language, commands, shown string) {
	g.t.Helper()
	if language == "js" {
		if strings.HasPrefix(commands, "import ") { // not an excerpt
			wantLines(g.t, shown, g.runProgram(commands))
		}
		return
	}
	commands = strings.TrimSpace(commands)
	for begins := range untestedCommands {
		if strings.HasPrefix(commands, begins) {
			return
		}
	}
	commands = g.substitute(page, commands) + "\n"
	before := g.set
	g.set += strings.Join(setsVariable.FindAllString(commands, -1), "")
	script := "curl() { command curl --fail-with-body --max-time 60 -sS \"$@\"; }\n" + strings.NewReplacer(
		"http://127.0.0.1:8080", g.at.URL(""), "localhost:8080", strings.TrimPrefix(g.at.URL(""), "http://"),
		"bin/perdure ", g.at.Program+" ", "perdure ", g.at.Program+" ").Replace(before+commands)
	cmd := exec.CommandContext(g.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), "PERDURE_URL="+g.at.URL(""))
	out, err := cmd.CombinedOutput()
	if waits := err != nil && cmd.ProcessState.ExitCode() == waitsForPeople; err != nil && !waits {
		g.t.Errorf("%s: got %v, want success:\n%s\n%s", page, err, commands, out)
	}
	g.printed = string(out)
	if strings.HasPrefix(commands, "perdure run ") {
		wantLines(g.t, shown, g.printed)
	}
}

// runProgram runs a JavaScript program of the page, and returns what it prints.
func (g *guide) runProgram(program string) string {
	g.t.Helper()
	modules, err := filepath.Abs(filepath.Join("node", "v1", "node_modules"))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(g.dir, "node_modules"))
	}
	if err == nil {
		program = strings.ReplaceAll(program, "http://127.0.0.1:8080", g.at.URL(""))
		err = os.WriteFile(filepath.Join(g.dir, "page.mjs"), []byte(program), 0o600)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.CommandContext(g.t.Context(), "node", "page.mjs")
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

var shownInterrupt = regexp.MustCompile(`\bint_\w+`)

// wantLines compares an output with the lines that a page shows, which it has in their order.
func wantLines(t *testing.T, shown, printed string) {
	t.Helper()
	rest := shownInterrupt.ReplaceAllString(printed, "int_…")
	for line := range strings.Lines(shown) {
		_, after, found := strings.Cut(rest, shownInterrupt.ReplaceAllString(strings.TrimRight(line, "\n"), "int_…"))
		if !found {
			t.Errorf("line of the page: want it in the output: %s\n%s", line, printed)
			return
		}
		rest = after
	}
}

// substitute starts what a block names, a run with an interrupt and its cursor, and puts the ids
// into the block.
func (g *guide) substitute(page, commands string) string {
	g.t.Helper()
	if !strings.Contains(commands, "int_") && !strings.Contains(commands, "/t1/") {
		return commands
	}
	g.runs++
	text := "Please refund order A-1001."
	if page == "guides/questions" {
		text = "ask"
	}
	thread := fmt.Sprintf("t1-%d", g.runs)
	in := kit.NewInput(kit.Marked(text))
	in.ThreadID, in.RunID = thread, "run-1"
	events := g.at.PostAgent(g.t, "/v1/agents/support/runs", in)
	if last := events[len(events)-1]; kit.Outcome(last) != "interrupt" {
		g.t.Fatalf("end of the run = %s, want an interrupt", last.Data)
	}
	asked := g.at.AwaitPending(g.t, "?thread="+thread, thread).Items[0]
	return regexp.MustCompile(`\bint_(42|…)`).ReplaceAllString(strings.NewReplacer(
		"/t1/", "/"+thread+"/", "00000000000200000-0d3ntr4cw", events[0].ID).Replace(commands), asked.ID)
}

// goProgram matches a complete Go program of a page.
var goProgram = regexp.MustCompile("(?ms)^```go\n(// Command .*?)^```$")

// TestGuidePrograms: the complete Go programs of the guides work as written. The page shows what
// they, and runs of their agents, print.
func TestGuidePrograms(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"guides/go-client", "guides/go-tools", "guides/programs"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, g := readGuide(t, page), &guide{t: t, dir: t.TempDir()}
			program := goProgram.FindStringSubmatch(text)
			if program == nil {
				t.Fatal("Go program of the page: got none, want one")
			}
			if page == "guides/go-client" {
				g = startGuide(t, text)
				_, shown, _ := strings.Cut(text, "go run .\n```\n\n```\n")
				shown, _, _ = strings.Cut(shown, "```")
				file := g.build(strings.ReplaceAll(program[1], "http://127.0.0.1:8080", g.at.URL("")))
				out, err := exec.CommandContext(t.Context(), file).CombinedOutput()
				if err != nil || shown == "" {
					t.Errorf("program of the page: got %v, want success:\n%s", err, out)
				}
				wantLines(t, shown, string(out))
				return
			}
			saveDefinitions(t, g.dir, text)
			w := startWorkerProgram(t, &ownWorker{file: g.build(program[1]), args: []string{"--agents", g.dir}}, g.dir)
			g.at = w.Perdure
			for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
				g.printed = ""
				if strings.HasPrefix(block[2], "perdure run ") {
					g.runBlock(page, block[1], block[2], block[3])
				}
				if strings.Contains(g.printed, "waits for a decision") {
					g.at.ApproveAll(t, newThreadID.FindStringSubmatch(g.printed)[1], 1)
				}
			}
		})
	}
}

// build builds a program of a page in the module of Perdure.
func (g *guide) build(program string) (file string) {
	g.t.Helper()
	dir := g.t.TempDir()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := kit.Build("..", file, source); err != nil {
		g.t.Fatal(err)
	}
	return file
}
