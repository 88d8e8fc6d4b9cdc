package copilotkit

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// Elements of CopilotKit's chat.
const (
	field     = "[data-testid=copilot-chat-textarea]"
	send      = "[data-testid=copilot-send-button]"
	assistant = "[data-testid=copilot-assistant-message]"
)

// TestPages: CopilotKit's chat, and the pages of the guides, in a browser. Tests that do not kill
// their runtime share one.
func TestPages(t *testing.T) {
	t.Parallel()
	kit.NeedBrowser(t)
	f := kit.NewFrontEnd(t, "copilotkit")
	pages := kit.NewFrontEnd(t, "react").Bundle(t, map[string]string{
		"page.jsx":        pageSource(t),
		"guide.jsx":       strings.ReplaceAll(guideBlock(t, "copilotkit", "jsx"), `"demo"`, `"careful"`),
		"assistantui.jsx": strings.NewReplacer(`"http://127.0.0.1:8080"`, `new URLSearchParams(location.search).get("api")`, `agent: "demo"`, `agent: "careful"`).Replace(guideBlock(t, "assistant-ui", "jsx")),
	})
	start := func(t *testing.T) *kit.RunnerProcess {
		t.Helper()
		return f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL(""), Pages: pages})
	}
	shared := start(t)
	t.Run("tools and state", func(t *testing.T) {
		t.Parallel()
		renderToolsAndState(t, shared)
	})
	t.Run("guide", func(t *testing.T) {
		t.Parallel()
		followGuide(t, f, pages)
	})
	t.Run("assistant-ui", func(t *testing.T) {
		t.Parallel()
		chatInAssistantUI(t, pages)
	})
	t.Run("approval", func(t *testing.T) {
		t.Parallel()
		approveAfterRestart(t, f, start(t))
	})
	t.Run("client tool", func(t *testing.T) {
		t.Parallel()
		answerClientTool(t, shared)
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		reloadAndStop(t, f, start(t))
	})
}

// renderToolsAndState: the page renders the call of a tool, and the state that the call changes.
// The agent receives the state that the page changes. A reload shows all of it.
func renderToolsAndState(t *testing.T, runtime *kit.RunnerProcess) {
	t.Helper()
	question, answer, next, done := kit.Marked("What is 6*7?"), kit.Marked("It is 42."), kit.Marked("Thanks."), kit.Marked("Bye.")
	answerAfterCall(t, question, kit.ModelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`}, answer)
	kit.SharedModel.AnswerWith(t, next, done)
	tab, thread := openPage(t, runtime, "drafter")
	say(tab, question)
	tab.Await(assistant, answer)
	tab.Await(".sum", "6*7 = 42")
	tab.Await("#state", `{"expression":"6*7"}`)
	tab.Click("#double")
	say(tab, next)
	tab.Await(assistant, done)
	tab.Reload()
	tab.Await(assistant, done)
	tab.Await(".sum", "6*7 = 42")
	tab.Await("#state", `{"expression":"6*7","seats":2}`)
	if state := kit.Shared.StateOf(t, kit.Input{ThreadID: thread}); state["seats"] != 2.0 {
		t.Errorf("state in Perdure = %v, want 2 seats", state)
	}
}

// approveAfterRestart: a call needs an approval. The runtime is killed and the page reloaded before
// the person approves it in the page.
func approveAfterRestart(t *testing.T, f kit.FrontEnd, runtime *kit.RunnerProcess) {
	t.Helper()
	question, answer := kit.Marked("What is 7*7?"), kit.Marked("It is 49.")
	answerAfterCall(t, question, kit.ModelCall{ID: "call_b", Name: "calculate", Arguments: `{"expression":"7*7"}`}, answer)
	tab, _ := openPage(t, runtime, "careful")
	say(tab, question)
	tab.Await(".interrupt", "")
	tab.Tolerate("") // the page may load more of its script when the runtime is down
	f.KillAndRestart(t, runtime)
	tab.Reload()
	tab.Await(".interrupt", "")
	tab.Click(".approve")
	tab.Await(assistant, answer)
	tab.Await(".sum", "7*7 = 49")
	tab.AwaitGone(".interrupt")
}

// answerClientTool: the model calls a tool of the page, and a person answers in it after a reload.
func answerClientTool(t *testing.T, runtime *kit.RunnerProcess) {
	t.Helper()
	question, answer := kit.Marked("Which color do I like?"), kit.Marked("You like blue.")
	answerAfterCall(t, question, kit.ModelCall{ID: "call_c", Name: "pick_color", Arguments: `{}`}, answer)
	tab, _ := openPage(t, runtime, "clerk")
	say(tab, question)
	tab.Await(".blue", "Blue")
	tab.Reload()
	tab.Click(".blue")
	tab.Await(assistant, answer)
	tab.Await(".color", "chosen: blue")
}

// reloadAndStop: the runtime is killed during a run. The reloaded page shows how the run goes on,
// and its Stop button cancels the run in Perdure. The next message is answered.
func reloadAndStop(t *testing.T, f kit.FrontEnd, runtime *kit.RunnerProcess) {
	t.Helper()
	question, next, brief := kit.UserMessage(kit.Marked("Never end.")), kit.Marked("Be brief."), kit.Marked("Yes.")
	kit.SharedModel.Answer(t, slow(question, kit.LongText(100_000)))
	kit.SharedModel.AnswerWith(t, next, brief)
	tab, thread := openPage(t, runtime, "assistant")
	say(tab, question.Content)
	tab.Await(assistant, "goes on")
	tab.Tolerate("") // the page reports the lost connection
	f.KillAndRestart(t, runtime)
	tab.Reload()
	tab.Await(assistant, "goes on")
	tab.Await("#running", "true")
	tab.Click(send) // it is the Stop button during a run
	tab.Await("#running", "false")
	say(tab, next)
	tab.Await(assistant, brief)
	wantOutcomes(t, thread, "cancelled", "success")
}

// pageSource returns CopilotKit's page.
func pageSource(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("node", "react", "copilotkit.jsx"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// openPage opens CopilotKit's page on a new thread.
func openPage(t *testing.T, runtime *kit.RunnerProcess, agent string) (tab *kit.Tab, thread string) {
	t.Helper()
	thread = newThread()
	return kit.OpenCopilotKit(t, runtime.Site+"/page.html?"+url.Values{"agent": {agent}, "thread": {thread}}.Encode()), thread
}

// say sends a message in a tab.
func say(tab *kit.Tab, text string) {
	tab.Type(field, text)
	tab.Click(send)
}

// answerAfterCall makes the model call a tool, and answer when it has the result.
func answerAfterCall(t *testing.T, question string, call kit.ModelCall, answer string) {
	t.Helper()
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: question, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{call}}},
		kit.Fixture{Match: kit.Match{UserMessage: question, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
}
