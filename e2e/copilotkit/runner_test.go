package copilotkit

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// setup starts CopilotKit's runtime in front of the shared Perdure.
func setup(t *testing.T) (kit.FrontEnd, *kit.RunnerProcess) {
	t.Helper()
	f := kit.NewFrontEnd(t, "copilotkit")
	return f, f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL("")})
}

// newThread returns the ID of a thread that the shared process inspects at its end.
func newThread() string {
	thread := kit.NewThread()
	kit.Shared.Threads.Add(thread)
	return thread
}

// TestRunner: tests that share a runtime, because they do not kill it.
func TestRunner(t *testing.T) {
	t.Parallel()
	f, runtime := setup(t)
	for name, test := range map[string]func(*testing.T, kit.FrontEnd, *kit.RunnerProcess){
		"stop": stopRuns, "message after a reload": sendAfterReload, "message that interrupts": interruptRun, "agents": offerAgents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f, runtime)
		})
	}
}

// TestRuntimeRestarts: the runtime is killed during a run. A page that connects to the next process
// sees the earlier messages, and the run as it goes on. Perdure has called the model once.
func TestRuntimeRestarts(t *testing.T) {
	t.Parallel()
	f, runtime := setup(t)
	thread := newThread()
	hello, question := kit.UserMessage(kit.Marked("Hello.")), kit.UserMessage(kit.Marked("Tell me a story."))
	greeting, story := kit.Marked("Hello to you."), kit.LongText(3200)
	kit.SharedModel.AnswerWith(t, hello.Content, greeting)
	kit.SharedModel.Answer(t, slow(question, story))

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": hello})
	page.Do(t, map[string]any{"say": question, "until": 40})
	page.TolerateErrors()
	runtime = f.KillAndRestart(t, runtime)

	reloaded := runtime.Open(t, "assistant", thread, "")
	partial := reloaded.Do(t, map[string]any{"connect": true, "until": 41})
	if n := len(partial.Messages); n != 4 || len(partial.Messages[3].Content) >= len(story) {
		t.Errorf("messages of the page = %v, want 4, the last one incomplete", partial.Messages)
	}
	want := []kit.Message{hello, kit.AssistantMessage(greeting), question, kit.AssistantMessage(story)}
	kit.WantMessages(t, want, reloaded.Next(t).Messages)
	if calls := kit.SharedModel.Calls(t, question.Content); len(calls) != 1 {
		t.Errorf("number of model calls = %d, want 1", len(calls))
	}
}

// TestPerdureRestarts: Perdure is killed during a run and starts again. The page that asked for the
// run, and a page that connects while Perdure is down, show the run to its end.
func TestPerdureRestarts(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	runtime := kit.NewFrontEnd(t, "copilotkit").StartRuntime(t, kit.Runtime{BaseURL: p.Proxy(t)})
	thread := kit.NewThread()
	p.Threads.Add(thread)
	question, story := kit.UserMessage(kit.Marked("Tell me a story.")), kit.LongText(1600)
	kit.SharedModel.Answer(t, slow(question, story))

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": question, "until": 40})
	p.Kill()
	other := runtime.Open(t, "assistant", thread, "")
	other.Send(t, map[string]any{"connect": true})
	p.Start(t)
	want := []kit.Message{question, kit.AssistantMessage(story)}
	kit.WantMessages(t, want, page.Next(t).Messages)
	kit.WantMessages(t, want, other.Next(t).Messages)
}

// stopRuns: Stop in a page cancels the run in Perdure, and the page shows no error. The next
// message of the page is accepted at once. A page at another runtime stops the run, too.
func stopRuns(t *testing.T, f kit.FrontEnd, runtime *kit.RunnerProcess) {
	t.Helper()
	thread := newThread()
	endless, next := kit.UserMessage(kit.Marked("Never end.")), kit.UserMessage(kit.Marked("Be brief."))
	again, last := kit.UserMessage(kit.Marked("Never end again.")), kit.UserMessage(kit.Marked("Goodbye."))
	brief, bye := kit.Marked("Yes."), kit.Marked("Bye.")
	kit.SharedModel.Answer(t, slow(endless, kit.LongText(100_000)), slow(again, kit.LongText(100_000)))
	kit.SharedModel.AnswerWith(t, next.Content, brief)
	kit.SharedModel.AnswerWith(t, last.Content, bye)

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": endless, "until": 40})
	page.Send(t, map[string]any{"stop": true})
	stopped := page.Do(t, map[string]any{"say": next})
	if stopped.Type != "end" || len(stopped.Messages) < 2 {
		t.Fatalf("line of the page after Stop = %+v, want the end with 2 messages", stopped)
	}
	answered := page.Next(t)
	wantStopped(t, answered.Messages[1:2], 40)
	kit.WantMessages(t, []kit.Message{next, kit.AssistantMessage(brief)}, answered.Messages[2:])

	page.Do(t, map[string]any{"say": again, "until": 40})
	other := f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL("")}).Open(t, "assistant", thread, "")
	other.Do(t, map[string]any{"connect": true, "until": 41})
	other.Send(t, map[string]any{"stop": true})
	if end := page.Next(t); end.Error != "" {
		t.Errorf("error of the page that requested the run = %q, want none", end.Error)
	}
	if end := other.Next(t); end.Error != "" {
		t.Errorf("error of the page that stopped the run = %q, want none", end.Error)
	}
	shown := other.Do(t, map[string]any{"say": last}).Messages
	wantStopped(t, shown[5:6], 40)
	kit.WantMessages(t, []kit.Message{last, kit.AssistantMessage(bye)}, shown[6:])
	wantOutcomes(t, thread, "cancelled", "success", "cancelled", "success")
}

// sendAfterReload: a page is closed during a run. A page at another runtime sends a message, which
// waits for the end of the run and loses nothing of it.
func sendAfterReload(t *testing.T, f kit.FrontEnd, runtime *kit.RunnerProcess) {
	t.Helper()
	thread := newThread()
	question, next := kit.UserMessage(kit.Marked("Tell me a story.")), kit.UserMessage(kit.Marked("And then?"))
	story, then := kit.LongText(1600), kit.Marked("Then they lived happily.")
	kit.SharedModel.Answer(t, slow(question, story))
	kit.SharedModel.AnswerWith(t, next.Content, then)

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": question, "until": 40})
	page.Close()
	other := f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL("")}).Open(t, "assistant", thread, "")
	other.Do(t, map[string]any{"connect": true, "until": 41})
	other.Send(t, map[string]any{"say": next})
	other.Next(t) // the end of connect
	want := []kit.Message{question, kit.AssistantMessage(story), next, kit.AssistantMessage(then)}
	kit.WantMessages(t, want, other.Next(t).Messages)
}

// interruptRun: a message with onBusy: interrupt cancels the run of another page, which shows
// no error, and is answered at once.
func interruptRun(t *testing.T, _ kit.FrontEnd, runtime *kit.RunnerProcess) {
	t.Helper()
	thread := newThread()
	endless, next := kit.UserMessage(kit.Marked("Never end.")), kit.UserMessage(kit.Marked("Be brief."))
	brief := kit.Marked("Yes.")
	kit.SharedModel.Answer(t, slow(endless, kit.LongText(100_000)))
	kit.SharedModel.AnswerWith(t, next.Content, brief)

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": endless, "until": 40})
	other := runtime.Open(t, "assistant", thread, "")
	end := other.Do(t, map[string]any{"say": next, "forwardedProps": kit.PerdureProps(map[string]any{"onBusy": "interrupt"})})
	if len(end.Messages) != 4 {
		t.Fatalf("end of the page = %+v, want 4 messages", end)
	}
	kit.WantMessages(t, []kit.Message{next, kit.AssistantMessage(brief)}, end.Messages[2:])
	if end := page.Next(t); end.Error != "" {
		t.Errorf("error of the other page = %q, want none", end.Error)
	}
	wantOutcomes(t, thread, "cancelled", "success")
}

// offerAgents: the runtime offers the named agents, by default all of Perdure.
func offerAgents(t *testing.T, f kit.FrontEnd, all *kit.RunnerProcess) {
	t.Helper()
	named := f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL(""), Agents: []string{"assistant", "careful"}})
	if got := agentsOf(t, named); !slices.Equal(got, []string{"assistant", "careful"}) {
		t.Errorf("agents of the runtime = %q, want %q", got, []string{"assistant", "careful"})
	}
	if got := agentsOf(t, all); !slices.Contains(got, "demo") || !slices.Contains(got, "assistant") {
		t.Errorf("agents of the runtime = %v, want demo and assistant among them", got)
	}
}

// agentsOf returns the agents that a runtime offers.
func agentsOf(t *testing.T, runtime *kit.RunnerProcess) []string {
	t.Helper()
	resp, err := http.Get(runtime.URL + "/info")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var info struct{ Agents map[string]any }
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(info.Agents))
}

// TestCredentials: Perdure sees the credentials of the page in each request of the runtime. A page
// without them shows the error of Perdure.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const key = "the-key-of-ann-of-the-shop"
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keys, []byte("keys: [{key: "+key+", subject: ann}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.InspectAtEnd(t)
	p.Start(t)
	runtime := kit.NewFrontEnd(t, "copilotkit").StartRuntime(t, kit.Runtime{BaseURL: p.URL(""), Agents: []string{"assistant"}})
	thread, endless := kit.NewThread(), kit.UserMessage(kit.Marked("Never end."))
	p.Threads.Add(thread)
	kit.SharedModel.Answer(t, slow(endless, kit.LongText(100_000)))

	page := runtime.OpenAs(t, key, "assistant", thread, "")
	page.Do(t, map[string]any{"say": endless, "until": 40})
	reloaded := runtime.OpenAs(t, key, "assistant", thread, "")
	reloaded.Do(t, map[string]any{"connect": true, "until": 41})
	reloaded.Send(t, map[string]any{"stop": true})
	wantStopped(t, reloaded.Next(t).Messages[1:], 40)
	wantStopped(t, page.Next(t).Messages[1:], 40)

	for _, command := range []map[string]any{{"say": endless}, {"connect": true}} {
		stranger := runtime.Open(t, "assistant", thread, "")
		stranger.TolerateErrors()
		if end := stranger.Do(t, command); end.Error != "the request has no credentials" {
			t.Errorf("%v without credentials = %+v, want the error about credentials", command, end)
		}
	}
}

// wantStopped checks that the messages are an answer that was stopped after n characters.
func wantStopped(t *testing.T, messages []kit.Message, n int) {
	t.Helper()
	if len(messages) != 1 || len(messages[0].Content) < n || len(messages[0].Content) > 90_000 {
		t.Errorf("stopped answer = %v, want a beginning of at least what was shown", messages)
	}
}

// wantOutcomes waits until the last run of a thread has ended, and checks the outcomes of all its
// runs, oldest first. A page shows an answer before its run has ended.
func wantOutcomes(t *testing.T, thread string, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(kit.WaitTimeout); ; {
		var page struct {
			Items []struct{ Outcome string }
		}
		resp := kit.Shared.RequestAs(t, "", http.MethodGet, "/v1/threads/"+thread+"/runs", nil)
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, run := range slices.Backward(page.Items) {
			got = append(got, run.Outcome)
		}
		if len(got) > 0 && got[len(got)-1] == "" && time.Now().Before(deadline) {
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("outcomes of the runs = %q, want %q", got, want)
		}
		return
	}
}

// slow returns a fixture of the model whose answer takes long.
func slow(question kit.Message, answer string) kit.Fixture {
	fixture := kit.SlowAnswer(answer)
	fixture.Match.UserMessage = question.Content
	return fixture
}
