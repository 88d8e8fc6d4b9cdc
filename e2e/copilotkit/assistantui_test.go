package copilotkit

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// chatInAssistantUI: the page of the guide, on another origin than Perdure. It sends messages,
// shows a tool call, asks for its approval, and stops a run. A reload during the approval, after
// it, and during the run shows the thread as it is in Perdure, and the page goes on.
func chatInAssistantUI(t *testing.T, pages string) {
	t.Helper()
	site := httptest.NewServer(http.FileServer(http.Dir(pages)))
	t.Cleanup(site.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_CORS_ORIGINS=" + site.URL}
	p.InspectAtEnd(t)
	p.Start(t)
	thread := kit.NewThread()
	p.Threads.Add(thread)
	question, answer, next, brief := kit.Marked("What is 6*7?"), kit.Marked("It is 42."), kit.Marked("Be brief."), kit.Marked("Yes.")
	endless := kit.UserMessage(kit.Marked("Never end."))
	call := kit.ModelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"6*7"}`}
	answerAfterCall(t, question, call, answer)
	kit.SharedModel.AnswerWith(t, next, brief)
	kit.SharedModel.Answer(t, slow(endless, kit.LongText(100_000)))

	tab := kit.OpenTab(t, site.URL+"/assistantui.html?api="+p.URL("")+"#"+thread, "404") // Chromium reports that the thread does not exist yet
	write := func(text string) {
		tab.Type("textarea", text)
		tab.Click("text=Send")
	}
	write(question)
	tab.Await("p", "Approve")
	tab.Reload()
	tab.Await(".tool", `calculate {"expression":"6*7"}`)
	tab.Click("text=Approve")
	tab.Await(".message", answer)
	tab.Await(".tool", `calculate {"expression":"6*7"}: 42`)
	tab.Reload()
	tab.Await(".message", answer)
	tab.Await(".tool", `calculate {"expression":"6*7"}: 42`)
	write(endless.Content)
	tab.Await(".message", "goes on")
	tab.Reload()
	tab.Await(".message", endless.Content)
	tab.Await(".message", "goes on")
	tab.Click("text=Stop")
	write(next)
	tab.Await(".message", brief)
	messages := p.MessagesOf(t, thread)
	kit.WantMessages(t, []kit.Message{{Role: "user", Content: question}, kit.ToolCallMessage(call), kit.ToolMessage("42"), kit.AssistantMessage(answer)}, messages[:4])
	wantStopped(t, messages[5:6], 1)
	kit.WantMessages(t, []kit.Message{{Role: "user", Content: next}, kit.AssistantMessage(brief)}, messages[6:])
}
