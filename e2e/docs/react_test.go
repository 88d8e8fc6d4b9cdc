package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// reactPage is the page of the guides about React in a tab of Chromium.
type reactPage struct {
	*kit.Tab
	t       *testing.T
	at      *kit.Perdure
	browser *kit.Browser
	// site is the address of the page.
	site string
}

// tsxBlock matches a source in React of a page.
var tsxBlock = regexp.MustCompile("(?s)```tsx\n(.*?)```")

// TestReactGuides: the page of the first chat works with the real example. With the components of
// the guides about questions and client tools, it answers both, also after a reload.
func TestReactGuides(t *testing.T) {
	t.Parallel()
	kit.NeedBrowser(t)
	chat, questions, tools := readGuide(t, "guides/react-chat"), readGuide(t, "guides/questions"), readGuide(t, "guides/client-tools")
	p := kit.StartExample(t, "refund", "http://127.0.0.1:8090", kit.StartBookshop(t).URL)
	saveDefinitions(t, p.Agents, questions+tools)
	p.Output.Await(t, "published shipper")

	sources := map[string]string{
		"Questions.tsx":   tsxBlock.FindStringSubmatch(questions)[1],
		"ColorPicker.tsx": tsxBlock.FindStringSubmatch(tools)[1],
		"page.jsx": `import { createRoot } from "react-dom/client";
import App from "./App.tsx";

createRoot(document.getElementById("root")).render(<App />);
`,
	}
	blocks := tsxBlock.FindAllStringSubmatch(chat, -1)
	if len(blocks) != 2 {
		t.Fatalf("the guide has %d blocks of TSX, want App.tsx and Approvals.tsx", len(blocks))
	}
	sources["App.tsx"] = replaced(t, blocks[0][1],
		"import ", "import { Questions } from \"./Questions\";\nimport { ColorPicker, tools } from \"./ColorPicker\";\nimport ",
		`agent: "refund"`, `agent: new URLSearchParams(location.search).get("agent") ?? "refund", tools`,
		"<Approvals client={client} options={options} />", `<Approvals client={client} options={options} />
      <Questions client={client} options={options} />
      <ColorPicker client={client} options={options} />`)
	sources["Approvals.tsx"] = blocks[1][1]
	for _, file := range []string{"Approvals.tsx", "Questions.tsx"} {
		template, err := os.ReadFile(filepath.Join("..", "internal", "starter", "templates", "chat", "src", file))
		if err != nil || string(template) != sources[file] {
			t.Errorf("%s of perdure new chat (%v) differs from that of the guide, want the same", file, err)
		}
	}
	site := kit.ServePage(t, p.Endpoint, kit.NewFrontEnd(t, "page").Bundle(t, sources)).URL + "/page.html"
	page := &reactPage{t: t, at: p, browser: kit.NewBrowser(t), site: site}

	page.approve()
	page.answerQuestion()
	page.pickColor()
}

// replaced replaces the first occurrence of each text, which the source must have.
func replaced(t *testing.T, source string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(source, pairs[i]) {
			t.Fatalf("the guide does not have %s", pairs[i])
		}
		source = strings.Replace(source, pairs[i], pairs[i+1], 1)
	}
	return source
}

// ask opens a new thread of an agent, sends a message, and returns the address.
func (p *reactPage) ask(agent, message string) (url string) {
	p.t.Helper()
	url = p.site + "?agent=" + agent + "#" + kit.NewThreadOf(p.at)
	p.Tab = p.open(url)
	p.Type("main > form:last-child input", message)
	p.Click("button:has-text('Send')")
	return url
}

// open opens an address in another tab. While the server restarts, a tab reports lost connections.
func (p *reactPage) open(url string) *kit.Tab {
	p.t.Helper()
	return p.browser.Open(url, "WebSocket", "Failed to load resource")
}

// approve asks for a refund, reloads the page, restarts the server, and approves in a second tab.
// Both tabs show the answer.
func (p *reactPage) approve() {
	p.t.Helper()
	url := p.ask("refund", "Please refund order A-1001.")
	p.Await("fieldset", "May issue_refund be called?")
	p.Type("main > form:last-child input", "Hello?")
	p.Await("button:has-text('Send'):disabled", "")
	p.Type("main > form:last-child input", "")
	p.Await("p", "The agent waits for a decision.")
	p.Picture("react-chat-approval", 560, 300)
	p.Reload()
	p.Await("fieldset", `"amount": 80`)
	second := p.open(url)
	second.Await("fieldset", `"amount": 80`)
	p.at.Kill()
	p.Await("p", "Reconnecting …")
	p.Picture("react-chat-reconnecting", 560, 330)
	p.at.Start(p.t)
	second.Click("button:has-text('Approve')")
	for _, tab := range []*kit.Tab{p.Tab, second} {
		tab.Await("p", "the shop says:")
		tab.AwaitGone("fieldset")
		tab.AwaitGone("p:has-text('Reconnecting')")
	}
	p.Picture("react-chat-answer", 560, 200)
	p.Reload()
	p.Await("p", "the shop says:")
}

// answerQuestion fills in the form of a question, first with a value that does not fit.
func (p *reactPage) answerQuestion() {
	p.t.Helper()
	p.ask("shipper", "Please send my parcels.")
	p.Await("form p", "Where to?")
	p.Type("input[name=city]", "Ulm")
	p.Type("input[name=parcels]", "2.5")
	p.Click("button:has-text('Answer')")
	p.Await("[role=alert]", "/content/parcels expected integer, got number")
	p.Reload()
	p.Type("input[name=city]", "Ulm")
	p.Type("input[name=parcels]", "2")
	p.Picture("questions-form", 560, 200)
	p.Click("button:has-text('Answer')")
	p.Await("p", "2 parcels go to Ulm, normal.")
	p.AwaitGone("input[name=city]")
}

// pickColor makes the call of the page's tool, after a reload.
func (p *reactPage) pickColor() {
	p.t.Helper()
	p.ask("picker", "Which color do I like?")
	p.Await("legend", "Which color do you like?")
	p.Reload()
	p.Click("button:has-text('green')")
	p.Await("p", "You like green.")
}
