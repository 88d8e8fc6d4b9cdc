package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// guideBlock matches a shell block of a page, also in a list.
var guideBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// untestedCommands are the beginnings of commands that need something that the test does not have,
// and why.
var untestedCommands = map[string]string{
	"temporal ":          "the command line of Temporal",
	"PERDURE_DEPLOYMENT": "a worker with a version, which deploy_test.go starts",
	"PERDURE_AUTH=":      "a file of settings, not a command",
	"OTEL_EXPORTER":      "a collector, which telemetry_test.go starts",
	"make ":              "the checkout; start_test.go and examples_test.go do the same",
	"go ":                "a module of its own, which programs_test.go builds",
	"npm ":               "the examples' clients, which examples_test.go runs",
}

// TestGuideCommands: the shell blocks of the guides work as written: every command succeeds. The
// test creates what they name: the thread t1 with an approval or a question of an agent.
func TestGuideCommands(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"concepts/runs", "concepts/streams", "guides/approvals", "guides/deploying", "guides/inbox", "guides/notifications", "guides/questions",
		"guides/schedules", "guides/testing", "guides/authentication", "guides/observability", "guides/client-tools",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "docs", filepath.FromSlash(page)+".md"))
			if err != nil {
				t.Fatal(err)
			}
			g := startGuide(t)
			blocks := guideBlock.FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 {
				t.Fatal("the page has no shell block")
			}
			for _, block := range blocks {
				g.runBlock(page, block[1])
			}
		})
	}
}

// guide is a guide's reader: a Perdure with the agents of the guides, and a folder.
type guide struct {
	t    *testing.T
	at   *kit.Perdure
	dir  string
	runs int
	// set are the lines of earlier blocks of the page that set variables.
	set string
}

var setsVariable = regexp.MustCompile(`(?m)^\w+=.*\n`)

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

func startGuide(t *testing.T) *guide {
	t.Helper()
	g := &guide{t: t, dir: t.TempDir()}
	g.at = kit.NewPerdure(filepath.Join(g.dir, "data"), kit.SharedModel)
	g.at.Agents = filepath.Join(g.dir, "agents")
	refund, err := os.ReadFile(filepath.Join("..", "examples", "refund", "agents", "refund.yaml"))
	if err == nil {
		err = os.CopyFS(g.at.Agents, os.DirFS(filepath.Join("..", "agents")))
	}
	for name, text := range map[string]string{
		"refund.yaml":  strings.ReplaceAll(string(refund), "http://127.0.0.1:8090", startBookshop(t).url),
		"support.yaml": guideAgent,
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(g.at.Agents, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	g.at.Start(t)
	t.Cleanup(func() { // not inspected: the guides leave approvals open
		if err := g.at.Stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// runBlock runs the commands of a block.
func (g *guide) runBlock(page, commands string) {
	g.t.Helper()
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
		g.t.Errorf("%s: %v\n%s\n%s", page, err, commands, out)
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
		g.t.Fatalf("the run ends with %s", last.Data)
	}
	asked := g.at.AwaitPending(g.t, "?thread="+thread, thread).Items[0]
	return regexp.MustCompile(`\bint_(42|…)`).ReplaceAllString(strings.NewReplacer(
		"/t1/", "/"+thread+"/", "00000000000200000-0d3ntr4cw", events[0].ID).Replace(commands), asked.ID)
}
