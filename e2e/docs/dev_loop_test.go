package docs

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// createdFile matches a row of a table with a command that creates a file or a folder.
var createdFile = regexp.MustCompile("(?m)^\\| `(perdure new [^`]+)` \\| [^`]*`([^`]+)`")

// TestDevLoopGuide: the commands of the guide create an agent, a tool and a page in an empty
// folder, and perdure dev prints what the guide shows when a file changes. The page is served.
func TestDevLoopGuide(t *testing.T) {
	t.Parallel()
	text := readGuide(t, "guides/dev-loop")
	g := &guide{t: t, dir: t.TempDir()}
	g.at = kit.NewPerdure(filepath.Join(g.dir, ".perdure"), kit.SharedModel)
	g.at.Agents = filepath.Join(g.dir, "agents")
	g.at.InspectAtEnd(t)

	for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
		commands := block[2]
		switch {
		case strings.HasSuffix(commands, "\nperdure dev\n"):
			g.execute(strings.TrimSuffix(commands, "perdure dev\n"))
			g.at.Start(t)
		case strings.HasSuffix(commands, "\nnpm install\nnpm run dev\n"):
			g.execute(strings.TrimSuffix(commands, "npm install\nnpm run dev\n"))
			g.wantPageServed(filepath.Join(g.dir, "chat"))
		default:
			g.execute(commands)
		}
	}
	created := createdFile.FindAllStringSubmatch(text, -1)
	if len(created) != 3 {
		t.Fatalf("the page has %d commands that create files", len(created))
	}
	for i, row := range created[:2] { // the third one is in a block
		name := fmt.Sprintf("other%d", i)
		g.execute(strings.ReplaceAll(row[1], "NAME", name) + "\ntest -e " + strings.ReplaceAll(row[2], "NAME", name))
	}
	g.wantPublications(text)
	put := regexp.MustCompile("`(perdure agents put [^`]+)`").FindStringSubmatch(text)
	g.execute(strings.ReplaceAll(put[1], "https://agents.example", g.at.URL("")))
}

// execute runs commands in the folder of the reader, which must succeed.
func (g *guide) execute(commands string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(commands, "perdure ", g.at.Program+" "))
	cmd.Dir, cmd.Env = g.dir, os.Environ()
	if g.at.Process != nil {
		cmd.Env = append(cmd.Env, "PERDURE_URL="+g.at.URL(""))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%s\n%v\n%s", commands, err, out)
	}
}

// wantPublications changes the agent of the guide, correctly and then with a mistake, and waits for
// the lines that the guide shows.
func (g *guide) wantPublications(text string) {
	g.t.Helper()
	shown := regexp.MustCompile("(?ms)^```\n((?:published|agents/).*?)^```$").FindAllStringSubmatch(text, -1)
	if len(shown) != 2 {
		g.t.Fatalf("the page shows %d outputs of perdure dev", len(shown))
	}
	file := filepath.Join(g.at.Agents, "helper.yaml")
	source, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatal(err)
	}
	changed := strings.Replace(string(source), "description: ", "description: Really. ", 1)
	mistaken := "\n\nname: helper\nmodel: scripted/demo\ninstructions: Answer.\ntools: [calculat]\n" // in line 6
	for i, definition := range []string{changed, mistaken} {
		if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
			g.t.Fatal(err)
		}
		for line := range strings.Lines(shown[i][1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "revision ")
			g.at.Output.Await(g.t, strings.TrimPrefix(line, "agents/"))
		}
	}
	if err := os.WriteFile(file, source, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// wantPageServed installs the packages of the page, without npm, starts it as "npm run dev" does,
// and reads it.
func (g *guide) wantPageServed(chat string) {
	g.t.Helper()
	kit.FrontEnd{Dir: chat}.InstallPackages(g.t, "page")
	port := fmt.Sprint(kit.FreePorts(g.t, 1)[0])
	cmd := exec.Command("node", filepath.Join("node_modules", "vite", "bin", "vite.js"), "--host", "127.0.0.1", "--port", port, "--strictPort")
	cmd.Dir, cmd.Env = chat, append(os.Environ(), "PERDURE_URL="+g.at.URL(""))
	launchProxy(g.t, cmd, "Local:")
	for _, path := range []string{"/", "/src/main.tsx", "/v1/agents"} {
		resp, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			g.t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			g.t.Errorf("GET %s: %s", path, resp.Status)
		}
	}
}
