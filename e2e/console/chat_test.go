package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// clerk reasons, needs approvals, asks, calls tools of the client, and says texts that try to break
// a page. counter counts slowly: about 50 events a second.
const clerk = `
name: clerk
description: Refunds orders.
model: scripted/clerk
tools: [calculate, ask_user, "client:*"]
approvals: [{tools: [calculate]}]
---
name: counter
model: scripted/counter
---
kind: script
name: clerk
turns:
  - when: Refund
    steps:
      - {think: The customer paid seven twelves., say: I calculate **it**., calls: [{tool: calculate, arguments: {expression: 12*7}}]}
      - say: "The refund is {calculate}."
  - when: Book
    steps:
      - calls: [{tool: ask_user, arguments: {question: "Which table?", schema: {type: object, required: [guests, room], properties: {
          guests: {type: integer, minimum: 1, title: Guests}, room: {enum: [hall, garden], title: Room}}}}}]
      - say: "Booked: {ask_user}"
  - when: Where
    steps: [{calls: [{tool: locate}]}, {say: "You are in {locate}."}]
  - when: Attack
    steps:
      - say: "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\n\n
          [a link](javascript:document.title='owned') ![a pixel](https://evil.example/pixel.png)\n\n
          Right to left: \u202egpj.exe and \e[31mred"
        calls: [{tool: export}]
      - say: It is over.
  - steps: [{say: I see it.}]
---
name: guide
model: scripted/guide
tools: ["client:show_map"]
---
kind: script
name: guide
turns: [{steps: [{calls: [{tool: show_map}]}, {say: "{show_map}"}]}]
---
kind: script
name: counter
pace: 20ms
turns: [{steps: [{say: "%s"}]}]
`

// counted is what the agent counter says.
func counted() string {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "n%d ", i)
	}
	return b.String() + "the end"
}

// openChat starts a process with the agents, which keeps its address when it restarts.
func openChat(t *testing.T) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = fmt.Sprintf("127.0.0.1:%d", kit.FreePorts(t, 1)[0])
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), fmt.Appendf(nil, clerk, counted()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

const (
	message    = "textarea[aria-label=Message]"
	transcript = "[aria-label=Conversation]"
	line       = "[data-kind=connection]"
)

// say sends a message.
func say(tab *kit.Tab, text string) {
	tab.Type(message, text)
	tab.Press("Enter")
}

// TestChat: a person chats with agents: text, reasoning and tool calls stream into the page, and
// what waits is decided and answered in the transcript. A second tab shows the same. The page
// continues after a reload and after the death of the server.
func TestChat(t *testing.T) {
	t.Parallel()
	p := openChat(t)
	b := kit.NewBrowser(t)
	tab := b.Open(p.URL("/console/chat/clerk"), "Failed to load resource", "WebSocket connection to")
	tab.Await(message, "")
	tab.WantAccessible()
	approveInline(tab, b)
	answerByForm(tab)
	answerForClient(tab)
	tab.Choose("input[type=file]", pixelFile(t))
	tab.Await("[aria-label='Attached files']", "pixel.png")
	say(tab, "Look at this")
	tab.Await(transcript+" img[alt='pixel.png']", "")
	tab.Await(transcript, "I see it.")
	editAndFork(tab)
	useOther(tab)
	attack(t, tab, p)
	tryDraft(t, tab, p)
	survive(t, tab, p)
}

// approveInline decides an approval in one tab, and both tabs show what follows.
func approveInline(tab *kit.Tab, b *kit.Browser) {
	say(tab, "Refund order 7")
	tab.Await("[data-kind=call] >> role=button[name=/^Approve/]", "")
	const key = "[data-kind=call] button kbd"
	tab.AwaitGone(key) // it would be text for the field, which has the focus
	tab.Press("Escape")
	tab.Await(key, "a")
	tab.AwaitGone("role=button[name='Close the panel']") // it has nothing to show
	tab.AwaitGone("role=button[name='Answer again']")    // the thread waits
	tab.AwaitGone("role=button[name='Edit the message']")
	tab.Await("[data-kind=reasoning] summary", "Reasoning")
	tab.Await("[data-kind=text] strong", "it")
	tab.WantAccessible()
	tab.WantAria(transcript, "chat")
	var url string
	tab.Evaluate("location.href", &url)
	second := b.Open(url, "Failed to load resource", "WebSocket connection to")
	second.Await("[data-kind=call] >> role=button[name=/^Approve/]", "")
	say(tab, "And look at this")
	tab.Await(queued, "it is answered after the decision.")
	tab.Click("role=button[name=/^Approve/]")
	tab.Await("[data-kind=text]", "The refund is 84.")
	second.Await("[data-kind=text]", "The refund is 84.")
	second.Await("[data-kind=text]", "I see it.")
	tab.AwaitGone(queued)
	second.Close()
	tab.Click("[data-kind=call] summary")
	tab.Await("[aria-label=Result]", "84")
}

// answerByForm answers a question with the form of its schema.
func answerByForm(tab *kit.Tab) {
	say(tab, "Book a table")
	tab.Await("[aria-label=Question]", "Which table?")
	tab.Type("label:text-is('Guests') + input", "0")
	tab.Click("role=button[name='Answer']")
	tab.Await("[aria-label=Question]", "At least 1.")
	tab.WantAccessible()
	tab.Type("label:text-is('Guests') + input", "3")
	tab.Click("label:has-text('garden')")
	tab.Click("role=button[name='Answer']")
	tab.Await("[data-kind=text]", `Booked: {"guests":3,"room":"garden"}`)
}

// answerForClient declares a tool, and answers its call in the place of the client.
func answerForClient(tab *kit.Tab) {
	tab.Click("role=button[name='Add a client tool']")
	tab.Type("label:text-is('Name') + input", "locate")
	tab.WantAccessible()
	tab.Click("role=button[name='Add the tool']")
	tab.AwaitGone("[role=dialog]")
	say(tab, "Where am I?")
	tab.Type("label:text-is('Result') + textarea", "Ulm")
	tab.Click("role=button[name='Send the result']")
	tab.Await("[data-kind=text]", "You are in Ulm.")
	tab.Await("[data-kind=call] summary:focus", "locate") // the form is gone
}

// useOther begins a chat with another agent that takes client tools. It receives none of the first
// one, and the page offers the tool that it names.
func useOther(tab *kit.Tab) {
	const tools = "[aria-label='Client tools']"
	tab.Evaluate("history.pushState(null, '', '/console/chat/guide')", nil)
	tab.Click("role=button[name='Add show_map']")
	tab.WantAccessible()
	tab.Click("role=button[name='Add the tool']")
	tab.Await(tools, "show_map")
	tab.AwaitGone("role=button[name='Add show_map']")
	tab.AwaitGone(tools + " >> text=locate")
	tab.Await(message+":focus", "") // what opened the dialog is gone
	say(tab, "Show")
	tab.Type("label:text-is('Result') + textarea", "A map")
	tab.Click("role=button[name='Send the result']")
	tab.Await("[data-kind=text]", "A map")
}

// editAndFork sends an edited message in a fork, which has the conversation before it.
func editAndFork(tab *kit.Tab) {
	tab.Click("role=button[name='Edit']")
	tab.Type("textarea[aria-label='Edited message']", "Refund order 8")
	tab.Click("role=button[name='Send in a fork']")
	tab.Await(transcript, "Forked from")
	tab.Await("[data-kind=text]", "You are in Ulm.")
	tab.Click("role=button[name=/^Reject/]")
	tab.Type("label:text-is('Reason') + input", "Too late")
	tab.Press("Enter")
	tab.Await("[data-kind=text]", "The refund is")
}

// attack shows hostile texts, a result of 1 MB and a text of 10,000 lines, which must neither run nor
// freeze the page.
func attack(t *testing.T, tab *kit.Tab, p *kit.Perdure) {
	t.Helper()
	const thread = "hostile"
	start(t, p, thread, "r1", strings.Repeat("a line of a long text\n", 10_000)+"Attack", `[{"name": "export", "description": "", "parameters": {"type": "object"}}]`)
	var messages struct {
		Items []struct {
			ToolCalls []struct{ ID string } `json:"toolCalls"`
		} `json:"items"`
	}
	p.GetJSON(t, "/v1/threads/"+thread+"/messages", &messages)
	call := messages.Items[len(messages.Items)-1].ToolCalls[0].ID
	rows := strings.TrimSuffix(strings.Repeat(`{"id": 7, "text": "<b>bold</b>"},`, 32_000), ",")
	post(t, p, "/v1/threads/"+thread+"/tool-results", map[string]any{"toolCallId": call, "content": "[" + rows + "]"})
	tab.Evaluate("void (window.began = performance.now(), history.pushState(null, '', '/console/threads/hostile'))", nil)
	tab.Await("[data-kind=text]", "It is over.")
	tab.Click("[data-kind=call] summary")
	tab.Await("[aria-label=Result] td", "<b>bold</b>")
	var took, unsafe int
	tab.Evaluate("new Promise((shown) => requestAnimationFrame(() => shown(Math.round(performance.now() - window.began))))", &took)
	t.Logf("10,000 lines and 1 MB of JSON are shown after %d ms", took)
	tab.Await("[data-kind=text]", "⟨U+202E⟩gpj.exe")
	tab.Evaluate(`document.querySelectorAll("[data-kind] :is(script, img, b, [onerror], a[href^='javascript:'])").length + (document.title.includes("owned") ? 1 : 0)`, &unsafe)
	if unsafe != 0 {
		t.Errorf("the page has %d elements of hostile texts", unsafe)
	}
}

// tryDraft chats with a draft of the agent that counts, and its published revision does not.
func tryDraft(t *testing.T, tab *kit.Tab, p *kit.Perdure) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/agents/clerk/drafts", map[string]any{"name": "clerk", "model": "scripted/counter"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var draft struct{ Revision string }
	if err := json.NewDecoder(resp.Body).Decode(&draft); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("draft: got %s, %v, want %d", resp.Status, err, http.StatusCreated)
	}
	tab.Evaluate("history.pushState(null, '', '/console/chat/clerk?revision="+draft.Revision+"')", nil)
	tab.Await("[data-kind=revision]", draft.Revision[:12])
	say(tab, "Go")
	tab.Await("[data-kind=revision]", draft.Revision[:12])
	tab.Await("[data-kind=text]", "n5 ")
}

// survive reloads the page and kills the server while an agent counts. The page shows each number
// once.
func survive(t *testing.T, tab *kit.Tab, p *kit.Perdure) {
	t.Helper()
	tab.Click("nav >> text=Chat")
	tab.Click("a[href$='/chat/counter']")
	say(tab, "Count")
	tab.Await("[data-kind=text]", "n20 ")
	measureInput(t, tab)
	tab.Reload()
	tab.Await(line, "Continued where it was.")
	tab.Await("[data-kind=text]", "n150 ")
	p.Kill()
	tab.Await(line, "Reconnecting")
	p.Start(t)
	tab.Await(line, "Continued where it was.")
	tab.Await("[data-kind=text]", "the end")
	tab.Await("role=button[name='Answer again']", "")
	var said []string
	tab.Evaluate("[...document.querySelectorAll('[data-kind=text] p')].map((element) => element.textContent)", &said)
	if got := strings.Join(said, "|"); got != counted() {
		t.Errorf("after the death of the server the page shows %q, want each number once", got)
	}
	tab.WantAccessible()
}

// measureInput prints how long a key needs to be on the screen while 50 events arrive each second.
func measureInput(t *testing.T, tab *kit.Tab) {
	t.Helper()
	var frames []float64
	tab.Evaluate(`(async () => {
		const field = document.querySelector("textarea[aria-label=Message]");
		const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
		const times = [];
		for (let i = 0; i < 30; i++) {
			const began = performance.now();
			set.call(field, field.value + "x");
			field.dispatchEvent(new Event("input", { bubbles: true }));
			await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
			times.push(performance.now() - began);
		}
		set.call(field, "");
		field.dispatchEvent(new Event("input", { bubbles: true }));
		return times.sort((a, b) => a - b);
	})()`, &frames)
	t.Logf("a key is on the screen after %.0f ms (median), %.0f ms (p95)", frames[len(frames)/2], frames[len(frames)*95/100])
}

// start runs the agent clerk, and reads the run to its end.
func start(t *testing.T, p *kit.Perdure, thread, run, text, tools string) {
	t.Helper()
	post(t, p, "/v1/agents/clerk/runs", map[string]any{
		"threadId": thread, "runId": run, "protocolVersion": "1.0", "tools": json.RawMessage(tools),
		"messages": []map[string]any{{"id": "m1", "role": "user", "content": text}},
	})
}

// post sends a request, and reads the response to its end.
func post(t *testing.T, p *kit.Perdure, path string, body any) {
	t.Helper()
	resp, err := p.Post(t.Context(), path, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: got %s, %v, want %d\n%s", path, resp.Status, err, http.StatusOK, answer)
	}
}

// pixelFile returns the path of an image.
func pixelFile(t *testing.T) string {
	t.Helper()
	pixel, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pixel.png")
	if err := os.WriteFile(file, pixel, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
