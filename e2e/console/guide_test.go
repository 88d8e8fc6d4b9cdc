package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// guide is the walk through the console, as a user of the guide does it.
type guide struct {
	*kit.Tab
	t    *testing.T
	at   *kit.Perdure
	shop *kit.Bookshop
}

// TestConsoleGuide: a user asks for a refund in the chat. The server is killed while the agent
// waits, and the page continues. The user finds the approval in the inbox and approves it with the
// keyboard, reads the answer, and then why: the timeline and the events of the run, the graph of a
// pipeline, and the definition of an agent. With -screenshots, the walk makes the pictures of
// docs/guides/console.md.
func TestConsoleGuide(t *testing.T) {
	t.Parallel()
	kit.NeedBrowser(t)
	shop := kit.StartBookshop(t)
	p := kit.StartExample(t, "refund", "http://127.0.0.1:8090", shop.URL)
	p.Addr = strings.TrimPrefix(p.URL(""), "http://") // it restarts there
	p.AddExample(t, "report", "bin/library", kit.BuildExample(t, "research/library"))
	p.Output.Await(t, "published report")
	g := &guide{t: t, at: p, shop: shop}
	g.Tab = kit.OpenTab(t, p.URL("/console/"), "Failed to load resource", "WebSocket connection to")
	g.Resize(1100, 680)

	g.askForRefund()
	g.killServer()
	g.approve()
	g.readRun()
	g.readPipeline()
	g.editAgent()
}

// askForRefund chats with the agent until the approval stands in the conversation.
func (g *guide) askForRefund() {
	g.Click("a[href$='/chat/refund']")
	say(g.Tab, "Please refund order A-1001.")
	g.Await("[data-kind=call] >> role=button[name=/^Approve/]", "")
	g.Await(transcript, "A-1001")
	g.Await("p", "refund waits for you.")
	g.Picture("console-chat", 1100, 680)
}

// killServer kills the server while the agent waits, and starts it again.
func (g *guide) killServer() {
	g.at.Kill()
	g.Await(line, "Reconnecting")
	g.at.Start(g.t)
	g.Await(line, "Continued where it was.")
	g.Await("[data-kind=call] >> role=button[name=/^Approve/]", "")
}

// approve goes to the inbox, approves there with the keyboard, and returns to the conversation.
func (g *guide) approve() {
	g.Press("Escape") // leaves the field of the message
	g.openApproval("issue_refund")
	g.Picture("console-inbox", 1100, 680)
	g.pressApprove()
	g.Press("g", "t")
	g.Click("main table a")
	g.Await("[data-kind=text]", "the shop says:")
	if paid := g.shop.Refunds(g.t); !slices.Equal(paid, []float64{80}) {
		g.t.Errorf("the shop has paid %v, want 80 once", paid)
	}
	g.PreferColors("dark")
	g.Picture("console-chat-dark", 1100, 680)
	g.PreferColors("light")
}

// pressApprove approves with a key, which does so only for what has been there for a moment: a second
// passes in the page.
func (g *guide) pressApprove() {
	g.Evaluate("{ const now = performance.now.bind(performance); performance.now = () => now() + 1000; }", nil)
	g.Press("a")
	g.AwaitGone("role=button[name=/^Approve/]")
}

// openApproval goes to the only approval of the inbox with the keyboard.
func (g *guide) openApproval(title string) {
	g.t.Helper()
	g.Press("g", "i")
	g.Await("nav [aria-current=page]", "Inbox")
	g.Await("[aria-label=Approvals] a", title)
	g.Press("j")
	g.Await("role=button[name=/^Approve/]", "")
}

// readRun opens the run that waited, its timeline and its events.
func (g *guide) readRun() {
	g.Click("role=button[name='Show the panel']")
	g.Click("role=tab[name='Run']")
	g.Await("[aria-label=Runs] li:last-child [data-status=finished]", "") // it has waited
	g.Click("[aria-label=Runs] li:last-child a")
	g.Await("main", "Run 1 of 2")
	g.Await("[role=treegrid]", "issue_refund")
	g.Picture("console-timeline", 1100, 560)
	g.Click("[role=treegrid] >> text=issue_refund")
	g.Await("[aria-label='Details of the span'] >> text=/^wait$/", "")
	g.Click("role=link[name='Events']")
	g.Await("[aria-label='Events of the run']", "TOOL_CALL_START")
}

// readPipeline runs a pipeline until it waits, and opens the graph of its run.
func (g *guide) readPipeline() {
	g.Press("g", "c")
	g.Click("a[href$='/chat/report']")
	say(g.Tab, "tea")
	g.Await("role=button[name=/^Approve/]", "")
	g.Click("role=tab[name='Run']")
	g.Click("[aria-label=Runs] li:last-child a")
	g.Click("role=link[name='Graph']")
	g.Await("main", "sign_off")
	g.Picture("console-graph", 1100, 680)
	g.openApproval("Publish this report?")
	g.pressApprove()
}

// editAgent opens the editor, where a mistake shows as it is typed.
func (g *guide) editAgent() {
	g.Press("g", "a")
	g.Click("main a[href$='/agents/refund']")
	g.Await("main", "A person approves refunds above 50.")
	g.Press("e")
	g.Await(".cm-content", "issue_refund")
	g.Click(".cm-content")
	g.Press("Control+Home", "x")
	g.Await("main", "Has mistakes")
	g.Picture("console-editor", 1100, 560)
}
