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

// startPage is a page of docs/start, whose blocks a new user runs in order.
type startPage struct {
	t    *testing.T
	name string
	at   *kit.Perdure
	// shop is the program that the page starts first; nil = none.
	shop *kit.Bookshop
	// dir is the working directory of the commands.
	dir string
	// printed is the output of the commands since the last output block.
	printed string
}

var (
	pageBlock = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	shownType = regexp.MustCompile(`"type":"[A-Z_]+"`)
	// namedThread matches the thread of a request, and newThreadID the new thread in the command
	// line's output.
	namedThread = regexp.MustCompile(`"threadId": "([^"]+)"`)
	newThreadID = regexp.MustCompile(`of thread (thread-\w+)`)
)

// TestStartPages: the pages for new users work as written. Every command succeeds and prints what
// the page shows. Every definition loads, or is a part of the example that the page names.
func TestStartPages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"README", "docs/start/first-agent", "docs/start/crash-it-yourself", "docs/start/first-approval", "docs/start/first-pipeline"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)+".md"))
			if err != nil {
				t.Fatal(err)
			}
			p := &startPage{t: t, name: name, dir: t.TempDir()}
			for _, block := range pageBlock.FindAllStringSubmatch(string(text), -1) {
				switch block[1] {
				case "sh":
					if strings.HasPrefix(block[2], "make test") {
						continue // the targets for contributors
					}
					p.runBlock(block[2])
				case "js":
					p.runProgram(block[2])
				case "yaml":
					p.loadDefinition(block[2])
				case "":
					p.wantOutput(block[2])
				default:
					t.Errorf("block of %q: want a language that the test knows", block[1])
				}
			}
			if p.at == nil {
				t.Error("page does not start Perdure, want it")
			}
		})
	}
}

// runBlock runs a block of commands.
func (p *startPage) runBlock(commands string) {
	p.t.Helper()
	switch {
	case strings.HasPrefix(commands, "go run ./examples/refund/shop"):
		p.shop = kit.StartBookshop(p.t)
		return
	case strings.Contains(commands, "make dev"):
		p.start(commands)
		return
	}
	for _, m := range namedThread.FindAllStringSubmatch(commands, -1) {
		p.at.Threads.Add(m[1])
	}
	if strings.Contains(commands, "int_…") {
		asked := p.at.AwaitPending(p.t, "?thread=refund-1", "refund-1").Items[0]
		p.restart() // after the kill on the page
		commands = strings.ReplaceAll(commands, "int_…", asked.ID)
	}
	switch waits := p.bash(commands); {
	case waits:
		p.at.ApproveAll(p.t, newThreadID.FindStringSubmatch(p.printed)[1], 1)
	case strings.Contains(commands, killsPerdure):
		p.restart()
	}
}

// restart kills the process and starts it again.
func (p *startPage) restart() {
	p.t.Helper()
	p.at.Kill()
	p.at.Start(p.t)
}

// start starts Perdure as "make dev" does, with the agents of the repository or of an example.
func (p *startPage) start(command string) {
	p.t.Helper()
	_, example, ok := strings.Cut(strings.TrimSpace(command), "EXAMPLE=")
	switch {
	case p.at != nil: // restarted with an API key
	case !ok:
		p.at = kit.NewPerdure(filepath.Join(p.dir, "data"), kit.SharedModel)
		p.at.Agents = filepath.Join(p.dir, "agents")
		if err := os.CopyFS(p.at.Agents, os.DirFS(filepath.Join("..", "agents"))); err != nil {
			p.t.Fatal(err)
		}
		p.at.InspectAtEnd(p.t)
		p.at.Start(p.t)
	case p.shop != nil:
		p.at = kit.StartExample(p.t, example, "http://127.0.0.1:8090", p.shop.URL)
	default:
		p.at = kit.StartExample(p.t, example, "bin/library", kit.BuildExample(p.t, "research/library"))
	}
}

// killsPerdure is the command with which the pages kill Perdure.
const killsPerdure = "pkill -9 -f 'perdure dev'"

// waitsForPeople is the exit code of a run that waits.
const waitsForPeople = 3

// bash runs commands against this Perdure, and reports whether the last one exits with
// waitsForPeople.
func (p *startPage) bash(commands string) (waits bool) {
	p.t.Helper()
	replaced := []string{
		"http://127.0.0.1:8080", p.at.URL(""), "bin/perdure ", p.at.Program + " ",
		// The page tells people how long to wait. A busy machine takes longer.
		"sleep 2;", "until grep -q TEXT_MESSAGE_CONTENT stream.txt; do sleep 0.1; done;",
		killsPerdure, fmt.Sprintf("kill -9 %d; wait || true", p.at.Process.Cmd.Process.Pid),
	}
	if p.shop != nil {
		replaced = append(replaced, "http://127.0.0.1:8090", p.shop.URL)
	}
	cmd := exec.CommandContext(p.t.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer(replaced...).Replace(commands))
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "PERDURE_URL="+p.at.URL(""))
	out, err := cmd.CombinedOutput()
	waits = err != nil && cmd.ProcessState.ExitCode() == waitsForPeople
	if err != nil && !waits {
		p.t.Fatalf("%s: got %v, want success:\n%s\n%s", p.name, err, commands, out)
	}
	p.printed += string(out)
	for _, m := range newThreadID.FindAllStringSubmatch(string(out), -1) {
		p.at.Threads.Add(m[1])
	}
	return waits
}

// runProgram runs a program with the client library that it imports.
func (p *startPage) runProgram(program string) {
	p.t.Helper()
	p.at.Threads.Add("thread-2")
	modules, err := filepath.Abs(filepath.Join("node", "v1", "node_modules"))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(p.dir, "node_modules"))
	}
	if err == nil {
		program = strings.ReplaceAll(program, "http://127.0.0.1:8080", p.at.URL(""))
		err = os.WriteFile(filepath.Join(p.dir, "hello.mjs"), []byte(program), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.printed = ""
	p.bash("node hello.mjs")
	if !strings.Contains(p.printed, "84") {
		p.t.Errorf("output of hello.mjs = %q, want text with 84", p.printed)
	}
}

// loadDefinition saves an agent and waits until Perdure has published it, or checks that a partial
// definition is a part of the example.
func (p *startPage) loadDefinition(definition string) {
	p.t.Helper()
	if first, _, _ := strings.Cut(definition, "\n"); strings.HasPrefix(first, "name: ") {
		name := strings.TrimPrefix(first, "name: ")
		file := filepath.Join(p.at.Agents, name+".yaml")
		if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
			p.t.Fatal(err)
		}
		p.at.Output.Await(p.t, "published "+name+", revision ")
		return
	}
	example := map[string]string{"docs/start/first-approval": "refund", "docs/start/first-pipeline": "report"}[p.name]
	file, err := os.ReadFile(filepath.Join("..", "examples", example, "agents", example+".yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	rest := string(file)
	for line := range strings.Lines(definition) {
		_, after, found := strings.Cut(rest, strings.TrimRight(line, "\n"))
		if !found {
			p.t.Errorf("%s: want this line in its place: %s", example, line)
			return
		}
		rest = after
	}
}

// wantOutput compares the output with a block of the page, which has the event types in their
// order.
func (p *startPage) wantOutput(output string) {
	p.t.Helper()
	rest := p.printed
	for _, shown := range shownType.FindAllString(output, -1) {
		_, after, found := strings.Cut(rest, shown)
		if !found {
			p.t.Errorf("page: want %s in the output of the commands:\n%s", shown, p.printed)
			return
		}
		rest = after
	}
	p.printed = ""
}
