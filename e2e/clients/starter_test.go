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
// package in the binary, shows the conversation again after a reload, names the agents if its URL
// has an unknown one, and answers questions. The tool answers for its agent.
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

	if err := os.WriteFile(filepath.Join(p.Agents, "asker.yaml"), []byte(asker), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Output.Await(t, "published asker")
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
	tab.Await("[role=alert]", `There is no agent "nobody". The agents are: asker, get_order, helper.`)
	tab.Evaluate("location.hash = 'agent=asker&thread="+kit.NewThreadOf(p)+"'", nil)
	answerQuestion(tab)
}

// asker is an agent that asks a question with a schema.
const asker = `name: asker
model: scripted/asker
tools: [ask_user]
---
kind: script
name: asker
turns:
  - steps:
      - calls:
          - tool: ask_user
            arguments:
              question: Where to?
              schema: {type: object, required: [city, parcels], properties: {city: {type: string}, parcels: {type: integer}}}
      - say: "{ask_user.parcels} parcels go to {ask_user.city}."
`

// answerQuestion asks the asker, and answers its question in the page: first wrongly, and after a
// reload correctly. The question is no approval, and no message can be sent before the answer.
func answerQuestion(tab *kit.Tab) {
	tab.Type("[aria-label=Message]", "Please send my parcels.")
	tab.Click("button:has-text('Send')")
	tab.Await("form p", "Where to?")
	tab.AwaitGone("fieldset")
	tab.Await("[role=status]", "The agent waits for a decision.")
	tab.Type("[aria-label=Message]", "Hello?")
	tab.Await("button:has-text('Send'):disabled", "")
	tab.Type("[name=city]", "Ulm")
	tab.Type("[name=parcels]", "2.5")
	tab.Click("button:has-text('Answer')")
	tab.Await("[role=alert]", "/content/parcels expected integer, got number")
	tab.Reload()
	tab.Type("[name=city]", "Ulm")
	tab.Type("[name=parcels]", "2")
	tab.Click("button:has-text('Answer')")
	tab.Await("li.assistant", "2 parcels go to Ulm.")
	tab.AwaitGone("[name=city]")
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
