package copilotkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"testing"
	"time"

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
	reloadBeforeApproval(t, site.URL, p)
}

// reloadBeforeApproval: the page of the guide is reloaded while the model writes a call, and has
// read that the run is active. The approval opens after the page has joined the run, or before
// that: then the request that joins the run finds a thread that waits. In both cases the page shows
// the approval.
func reloadBeforeApproval(t *testing.T, site string, p *kit.Perdure) {
	t.Helper()
	api, statuses, answers := holdThread(t, p)
	for _, isOpenBefore := range []bool{false, true} {
		thread, question, answer := kit.NewThreadOf(p), kit.Marked("What is 8*8?"), kit.Marked("It is 64.")
		yes, no := true, false
		call := kit.ModelCall{ID: kit.Marked("call"), Name: "calculate", Arguments: `{"expression":"8*8"}`}
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: question, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{call}}, Latency: 4000},
			kit.Fixture{Match: kit.Match{UserMessage: question, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
		tab := kit.OpenTab(t, site+"/assistantui.html?api="+api+"#"+thread, "404")
		tab.Type("textarea", question)
		tab.Click("text=Send")
		tab.Await("button:has-text('Stop'):enabled", "")
		awaitActive(t, p, thread) // the page shows the button before the run has begun
		tab.Reload()
		select {
		case status := <-statuses:
			if isOpenBefore {
				p.AwaitPending(t, "?thread="+thread, thread)
			}
			answers <- struct{}{}
			if status != "running" {
				t.Fatalf("status of the thread after a reload = %s, want running", status)
			}
		case <-time.After(kit.WaitTimeout):
			t.Fatal("the page has not asked for its thread")
		}
		tab.Await("p", "Approve")
		tab.Click("text=Approve")
		tab.Await(".message", answer)
		tab.Await(".message", question)
	}
}

// awaitActive waits until a thread has an active run.
func awaitActive(t *testing.T, p *kit.Perdure, thread string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for {
		resp, err := p.Get(ctx, "/v1/threads/"+thread, "")
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Status any } // the status of a problem is a number: the thread is not known yet
		err = json.NewDecoder(resp.Body).Decode(&shown)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if shown.Status == "running" {
			return
		}
	}
}

// holdThread returns an address that forwards to the API. It announces the status in the response
// to a request for a thread, and sends the response when it may.
func holdThread(t *testing.T, p *kit.Perdure) (api string, statuses <-chan string, answers chan<- struct{}) {
	t.Helper()
	to, err := url.Parse(p.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	shown, mayAnswer := make(chan string), make(chan struct{})
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.FlushInterval = -1
	forward.ModifyResponse = func(r *http.Response) error {
		isThread, _ := path.Match("/v1/threads/*", r.Request.URL.Path)
		if !isThread || r.Request.Method != http.MethodGet || r.StatusCode != http.StatusOK {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var thread struct{ Status string }
		if err := errors.Join(err, json.Unmarshal(body, &thread)); err != nil {
			return err
		}
		select {
		case shown <- thread.Status:
		case <-t.Context().Done():
		}
		select {
		case <-mayAnswer:
		case <-t.Context().Done():
		}
		return nil
	}
	server := httptest.NewServer(forward)
	t.Cleanup(server.Close)
	return server.URL, shown, mayAnswer
}
