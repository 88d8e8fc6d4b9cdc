package remote

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// Elements of CopilotKit's chat.
const (
	chatField   = "[data-testid=copilot-chat-textarea]"
	chatSend    = "[data-testid=copilot-send-button]"
	chatAnswers = "[data-testid=copilot-assistant-message]"
)

// stockRuntime is the server of a front end: CopilotKit's runtime with a stock HttpAgent for a URL, and pages.
const stockRuntime = `
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { createCopilotExpressHandler } from "@copilotkit/runtime/v2/express";
import express from "express";

const agents = { assistant: new HttpAgent({ url: "AGENT_URL" }) };
const runtime = new CopilotRuntime({ agents, runner: new InMemoryAgentRunner() });
const app = express().use(express.static("PAGES")).use(createCopilotExpressHandler({ runtime, basePath: "/api" }));
const server = app.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));
`

// TestRemoteBehindCopilotKit: CopilotKit's chat in a browser talks to a Mastra agent, and then to the same agent
// behind Perdure: only the URL of its runtime changes. With Perdure's runner, a closed tab, and deaths of Perdure
// and of Mastra, leave no trace in the conversation.
func TestRemoteBehindCopilotKit(t *testing.T) {
	t.Parallel()
	kit.NeedBrowser(t)
	answerPrompts(t)
	answerBookings(t)
	page, err := os.ReadFile(filepath.Join("node", "react", "copilotkit.jsx"))
	if err != nil {
		t.Fatal(err)
	}
	pages := kit.NewFrontEnd(t, "react").Bundle(t, map[string]string{"page.jsx": string(page)})
	s := npmServers[0]
	s.AgentServer = kit.StartAgentServer(t, s.script, s.folder)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Addr = t.TempDir(), kit.FreeAddress(t)
	definition := "name: assistant\nremote: {url: 'http://" + s.Address + s.path + "', retry: restart}\n"
	if err := os.WriteFile(filepath.Join(p.Agents, "assistant.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)

	t.Run("one URL", func(t *testing.T) {
		for _, agentURL := range []string{"http://" + s.Address + s.path, p.URL("/v1/agents/assistant/runs")} {
			front := kit.NewFrontEnd(t, "copilotkit")
			server := front.StartServer(t, strings.NewReplacer("AGENT_URL", agentURL, "PAGES", pages).Replace(stockRuntime))
			c := openChat(t, server, kit.NewThread())
			c.say(kit.Marked(sayHello))
			c.Await(chatAnswers, hello)
			c.say(kit.Marked(weather))
			c.wantAnswers(t, hello, letMeLook, clearSky)
		}
	})
	t.Run("deaths", func(t *testing.T) {
		runtime := kit.NewFrontEnd(t, "copilotkit").StartRuntime(t, kit.Runtime{BaseURL: p.URL(""), Pages: pages})
		surviveDeaths(t, s, p, runtime)
	})
}

// surviveDeaths: the tab is closed while a story is told, and while a person has to answer a question of the
// agent. Perdure and the server of the agent are killed meanwhile.
func surviveDeaths(t *testing.T, s npmServer, p *kit.Perdure, runtime *kit.RunnerProcess) {
	t.Helper()
	thread, question, story := kit.NewThreadOf(p), kit.Marked(tellStory), kit.LongText(300)
	kit.SharedModel.AnswerInOrder(t, question, kit.SlowAnswer(goneStory), kit.SlowAnswer(story))
	c := openChat(t, runtime, thread)
	c.say(question)
	c.Await(chatAnswers, kit.CrashedText)
	c.Close()
	p.Kill()
	s.Kill()
	s.Start(t)
	p.Start(t)
	c = openChat(t, runtime, thread)
	c.Await(chatAnswers, "the end.")
	c.wantAnswers(t, story)

	c.say(kit.Marked(book))
	c.Await(".interrupt", "Book the room 12?")
	c.Close()
	p.Restart(t)
	asked := p.AwaitPending(t, "?thread="+thread, thread).Items[0]
	if status, a := kit.Decide(t, p.Endpoint, thread, asked.ID, `{"decision":"answer","content":{"confirmed":true}}`); status != http.StatusOK {
		t.Fatalf("answer: got %d %v, want %d", status, a, http.StatusOK)
	}
	c = openChat(t, runtime, thread)
	c.Await(chatAnswers, booked)
	c.wantAnswers(t, story, oneMoment, booked)
	c.AwaitGone(".interrupt")
	var told []string
	for _, m := range p.MessagesOf(t, thread) {
		if m.Role == "assistant" {
			told = append(told, m.Content)
		}
	}
	if diff := cmp.Diff([]string{story, oneMoment, booked}, told); diff != "" {
		t.Errorf("answers in the log (-want +got):\n%s", diff)
	}
}

// chatPage is a tab with CopilotKit's chat.
type chatPage struct{ *kit.Tab }

// openChat opens the chat of a thread in a new profile, which has nothing of the thread.
func openChat(t *testing.T, runtime *kit.RunnerProcess, thread string) chatPage {
	t.Helper()
	query := url.Values{"agent": {"assistant"}, "thread": {thread}}
	return chatPage{kit.OpenCopilotKit(t, runtime.Site+"/page.html?"+query.Encode())}
}

// say sends a message.
func (c chatPage) say(text string) {
	c.Type(chatField, text)
	c.Click(chatSend)
}

// wantAnswers waits for the last answer, and checks that the page shows these answers and no others.
func (c chatPage) wantAnswers(t *testing.T, want ...string) {
	t.Helper()
	c.Await(chatAnswers+":has-text("+kit.Quote(want[len(want)-1])+")", "")
	var got []string
	c.Evaluate(`[...document.querySelectorAll("`+chatAnswers+`")].map((e) => e.innerText.trim()).filter(Boolean)`, &got)
	for i := range want {
		want[i] = strings.TrimSpace(want[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers on the page (-want +got):\n%s", diff)
	}
}
