package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestStarters: the files of "perdure new" work as they are. The chat is installed by npm with the
// package in the binary, shows the conversation again after a reload, and names the agents if its
// URL has an unknown one. The tool answers for its agent.
func TestStarters(t *testing.T) {
	t.Parallel()
	kit.NeedBrowser(t)
	dir := t.TempDir()
	create := func(want int, args ...string) {
		t.Helper()
		cmd := exec.Command(kit.Program, append([]string{"new"}, args...)...)
		cmd.Dir = dir
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != want {
			t.Fatalf("perdure new %v exits with %d, want %d\n%s", args, cmd.ProcessState.ExitCode(), want, out)
		}
	}
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Agents = filepath.Join(dir, "agents")
	p.InspectAtEnd(t)
	p.Start(t)
	create(0, "agent", "helper")
	create(2, "agent", "helper")
	p.Output.Await(t, "published helper")
	create(0, "tool", "get_order")
	p.Output.Await(t, "published get_order")

	program := exec.Command("node", filepath.Join(p.Agents, "get_order.mjs"))
	launch(t, program, "get_order listens")
	for message, want := range map[string]string{
		"Where is A-1001?": "Order A-1001 is shipped.\n",
		"Where is Z-1?":    "HTTP 404 Not Found: There is no order Z-1.\n",
	} {
		if said := p.StartCommand(t, "run", "get_order", message, "--thread", kit.NewThreadOf(p)).Finish(t, 0); said != want {
			t.Errorf("%s: answer of the tool's agent = %q, want %q", message, said, want)
		}
	}

	create(0, "chat")
	chat := filepath.Join(dir, "chat")
	if packed, err := os.ReadFile(filepath.Join(chat, "perdure-client.tgz")); err != nil || !bytes.Equal(packed, kit.ClientPackage(t)) {
		t.Errorf("package of the client in the project (%v) differs, want that of this checkout", err)
	}
	if err := kit.Execute(chat, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund"); err != nil {
		t.Fatal(err)
	}
	if err := kit.Execute(chat, "npm", "run", "build"); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(kit.FreePorts(t, 1)[0])
	vite := exec.Command("node", filepath.Join("node_modules", "vite", "bin", "vite.js"), "preview", "--host", "127.0.0.1", "--port", port, "--strictPort")
	vite.Dir, vite.Env = chat, append(os.Environ(), "PERDURE_URL="+p.URL(""))
	launch(t, vite, "127.0.0.1")

	tab := kit.OpenTab(t, "http://127.0.0.1:"+port+"/#agent=helper&thread="+kit.NewThreadOf(p))
	tab.Type("input", "What is 12*7?")
	tab.Click("button:has-text('Send')")
	tab.Await("li.assistant", "84")
	tab.Reload()
	tab.Await("li.user", "What is 12*7?")
	if page := tab.Await("li.assistant", "84"); strings.Count(page, "What is 12*7?") != 2 { // the message, and its quotation in the answer
		t.Errorf("page:\n%s\nwant the question twice", page)
	}

	tab.Evaluate("location.hash = 'agent=nobody&thread=x'", nil)
	tab.Await("[role=alert]", `There is no agent "nobody". The agents are: get_order, helper.`)
}

// launch starts a program, waits for a line of its output that has a text, and kills it when the
// test ends.
func launch(t *testing.T, cmd *exec.Cmd, line string) {
	t.Helper()
	var output kit.Output
	process, err := kit.Launch(t.Context(), cmd, &output, func(b []byte) bool { return bytes.Contains(b, []byte(line)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
}
