package remote

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// echoes has agents in whose places a remote agent works. SERVER is its address; it repeats what it
// was told, and reports 15 tokens.
const echoes = `name: afar
description: Repeats.
remote: {url: SERVER/afar}
---
name: chief
model: openai/scripted-by-the-test
tools: ["agent:afar"]
---
name: desk
model: openai/scripted-by-the-test
tools: ["handoff:afar"]
---
name: boss
model: openai/scripted-by-the-test
tools: ["agent:broken"]
---
name: broken
description: Fails.
remote: {url: SERVER/broken}
---
name: careful
steps:
  - {name: ask, agent: broken, onError: continue}
  - {name: again, agent: afar, input: "again ${input.text}"}
---
name: pipe
steps:
  - {name: ask, agent: afar, input: "ask ${input.text}"}
  - {name: again, agent: afar, input: "again ${steps.ask}"}
---
name: fan
steps:
  - name: all
    parallel:
      - {name: one, agent: afar, input: "one ${input.text}"}
      - {name: two, agent: afar, input: "two ${input.text}"}
---
name: each
steps:
  - name: all
    map:
      items: "['one', 'two', 'three']"
      concurrency: 3
      steps: [{name: voice, agent: afar, input: "${item} ${input.text}"}]
---
name: hidden
steps:
  - {name: ask, agent: afar, input: "ask ${input.text}", visible: false}
  - {name: again, agent: afar, input: "again ${steps.ask}"}
---
name: titled
titleModel: openai/title-model
remote: {url: SERVER/afar}
---
name: thrifty
limits: {tokens: 20}
steps:
  - {name: one, agent: afar}
  - {name: two, agent: afar}
  - {name: three, agent: afar}
---
name: once
remote: {url: SERVER/slow}
limits: {turns: 1}
---
name: brief
remote: {url: SERVER/slow}
limits: {duration: 2s}
---
name: slow
remote: {url: SERVER/slow}
`

// echo repeats the last message.
func echo(e *exchange) {
	ids := `"threadId":` + kit.Quote(e.in.ThreadID) + `,"runId":` + kit.Quote(e.in.RunID)
	var last struct {
		Content string `json:"content"`
	}
	if len(e.in.Messages) > 0 {
		_ = json.Unmarshal(e.in.Messages[len(e.in.Messages)-1], &last) // the tests check the answer
	}
	e.emit(`{"type":"RUN_STARTED",`+ids+`}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":`+kit.Quote(heard(last.Content))+`}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`,
		`{"type":"RUN_FINISHED",`+ids+`,"usage":[{"provider":"there","model":"echo","inputTokens":10,"outputTokens":5,"totalTokens":15}]}`)
}

// heard is the answer of echo to a text.
func heard(text string) string { return "heard: " + text }

// slow begins a run and sends nothing more.
func slow(e *exchange) {
	e.begin()
	<-e.r.Context().Done()
}

// startEchoes starts a server with the agents of echoes, and a process with further variables.
func startEchoes(t *testing.T, env ...string) (*flakyServer, *kit.Perdure) {
	t.Helper()
	s := startFlakyServer(t)
	s.handle("/afar", echo)
	s.handle("/slow", slow)
	s.handle("/broken", func(e *exchange) { http.Error(e.w, kit.Mark+" no credit", http.StatusPaymentRequired) })
	return s, startWith(t, strings.ReplaceAll(echoes, "SERVER", s.URL), env...)
}

// texts returns the texts of the assistant in messages.
func texts(messages []kit.Message) (all []string) {
	for _, m := range messages {
		if m.Role == "assistant" && m.Content != "" {
			all = append(all, m.Content)
		}
	}
	return all
}

// TestPlaces: a remote agent works wherever an agent with a model does.
func TestPlaces(t *testing.T) {
	t.Parallel()
	_, p := startEchoes(t)
	yes, no := true, false
	for agent, c := range map[string]struct {
		calls []kit.ModelCall // of the agent's model
		want  func(text string) []string
		after string // the answer of the model after the calls
	}{
		"afar":    {want: func(s string) []string { return []string{heard(s)} }},
		"chief":   {calls: []kit.ModelCall{{Name: "afar", Arguments: `{"task":"` + kit.Mark + ` task"}`}}, after: kit.Mark + " done", want: func(string) []string { return []string{heard(kit.Mark + " task"), kit.Mark + " done"} }},
		"boss":    {calls: []kit.ModelCall{{Name: "broken", Arguments: `{"task":"` + kit.Mark + ` task"}`}}, after: kit.Mark + " failed", want: func(string) []string { return []string{kit.Mark + " failed"} }},
		"careful": {want: func(s string) []string { return []string{heard("again " + s)} }},
		"desk":    {calls: []kit.ModelCall{{Name: "transfer_to_afar", Arguments: `{}`}}},
		"pipe":    {want: func(s string) []string { return []string{heard("ask " + s), heard("again " + heard("ask "+s))} }},
		"fan":     {want: func(s string) []string { return []string{heard("one " + s), heard("two " + s)} }},
		"each":    {want: func(s string) []string { return []string{heard("one " + s), heard("three " + s), heard("two " + s)} }},
		"hidden":  {want: func(s string) []string { return []string{heard("again " + heard("ask "+s))} }},
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("Say it."))
			if c.calls != nil {
				kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: c.calls}})
			}
			if c.after != "" {
				kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: c.after}})
			}
			events := p.RunAgent(t, "/v1/agents/"+agent+"/runs", in)
			if last := events[len(events)-1]; last.Type != "RUN_FINISHED" || agent != "boss" && !strings.Contains(string(last.Data), `"model":"echo"`) {
				t.Errorf("end of the run = %s, want RUN_FINISHED with the usage of the remote", last.Data)
			}
			got := texts(kit.ShownMessages(t, in.Messages, events))
			if agent == "desk" {
				if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "heard: ") {
					t.Errorf("texts = %q, want the answer of the remote", got)
				}
				next := p.RunAgent(t, "/v1/agents/desk/runs", in.NextRun("run-2", "", kit.UserMessage(kit.Marked("And now?"))))
				if !slices.ContainsFunc(next, func(e kit.Event) bool { return strings.HasPrefix(e.Member("delta"), "heard: ") }) {
					t.Error("the remote agent has not kept the thread")
				}
				return
			}
			want := c.want(in.Messages[0].Content)
			if agent == "fan" || agent == "each" {
				slices.Sort(got) // branches are concurrent
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("texts = %q, want %q", got, want)
			}
			if stored := texts(p.MessagesOf(t, in.ThreadID)); len(stored) != len(want) {
				t.Errorf("texts in the log = %q, want %q", stored, want)
			}
		})
	}
}

// TestLimits: limits of the definition and of the tenant apply to remote agents.
func TestLimits(t *testing.T) {
	t.Parallel()
	s, p := startEchoes(t, "PERDURE_BUDGET_TENANT_TOKENS_PER_DAY=40")
	run := func(agent string) kit.Event {
		events := p.RunAgent(t, "/v1/agents/"+agent+"/runs", kit.NewInput(kit.Marked("Say it.")))
		return events[len(events)-1]
	}
	if last := run("brief"); last.Member("code") != "limit_duration" {
		t.Errorf("end after the duration = %s, want limit_duration", last.Data)
	}
	for n := range 4 {
		last, isOver := run("afar"), n == 3 // 45 tokens are used then
		if isOver != (last.Member("code") == "budget_exceeded") || !isOver && last.Type != "RUN_FINISHED" {
			t.Errorf("end of run %d = %s, want budget_exceeded: %t", n+1, last.Data, isOver)
		}
	}
	if n := len(s.received("/afar")); n != 3 {
		t.Errorf("%d requests, want 3: none after the budget is exceeded", n)
	}
}

// TestTokenLimit: the tokens that remote agents report count for the limit of the run.
func TestTokenLimit(t *testing.T) {
	t.Parallel()
	s, p := startEchoes(t)
	events := p.RunAgent(t, "/v1/agents/thrifty/runs", kit.NewInput(kit.Marked("Say it.")))
	if last := events[len(events)-1]; last.Member("code") != "limit_tokens" {
		t.Errorf("end of the run = %s, want limit_tokens", last.Data)
	}
	if n := len(s.received("/afar")); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestBusyThread: the policies for a thread whose remote agent is busy.
func TestBusyThread(t *testing.T) {
	t.Parallel()
	s, p := startEchoes(t)
	first := func() *kit.Follower {
		f := p.FollowAgent(t, "/v1/agents/slow/runs", kit.NewInput(kit.Marked("Slowly.")))
		f.UntilContent(t, 2)
		return f
	}
	t.Run("reject", func(t *testing.T) {
		f := first()
		resp, err := p.Post(t.Context(), "/v1/agents/slow/runs", f.In.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("Now!"))))
		if r := kit.ReadProblem(t, resp, err); r.Status != http.StatusConflict || r.Code != "busy" {
			t.Errorf("got %+v, want 409 busy", r)
		}
		wantCancel(t, p, f)
	})
	t.Run("interrupt", func(t *testing.T) {
		f := first()
		said := kit.UserMessage(kit.Marked("Now!"))
		next := p.FollowAgent(t, "/v1/agents/afar/runs", f.In.NextRun("run-2", "interrupt", said))
		f.Finish(t)
		next.Finish(t)
		kit.WantOutcome(t, f, "cancelled")
		if got := texts(kit.ShownMessages(t, next.In.Messages, next.Events)); !slices.Contains(got, heard(said.Content)) {
			t.Errorf("texts = %q, want the answer to the second message", got)
		}
	})
	t.Run("enqueue", func(t *testing.T) {
		f := first()
		said := kit.UserMessage(kit.Marked("Then."))
		next := p.FollowAgent(t, "/v1/agents/afar/runs", f.In.NextRun("run-2", "enqueue", said))
		wantCancel(t, p, f)
		next.Finish(t)
		if got := texts(kit.ShownMessages(t, next.In.Messages, next.Events)); !slices.Contains(got, heard(said.Content)) {
			t.Errorf("texts = %q, want the answer to the second message", got)
		}
	})
	t.Run("steer", func(t *testing.T) {
		f, said := steeredRun(t, s, p, "slow")
		kit.WantOutcome(t, f, "success")
		if got, want := texts(kit.ShownMessages(t, f.In.Messages, f.Events)), []string{saidIn(1) + "scouted", saidIn(1) + "begins, ends.", heard(said)}; !slices.Equal(got, want) {
			t.Errorf("texts = %q, want %q", got, want)
		}
	})
	t.Run("steer beyond the limit of turns", func(t *testing.T) {
		f, _ := steeredRun(t, s, p, "once")
		if last := f.Events[len(f.Events)-1]; last.Member("code") != "limit_turns" {
			t.Errorf("end of the run = %s, want limit_turns", last.Data)
		}
	})
}

// steeredRun runs an agent of the path /slow, sends a message while it answers, and reads its run.
func steeredRun(t *testing.T, s *flakyServer, p *kit.Perdure, agent string) (f *kit.Follower, said string) {
	t.Helper()
	goOn := make(chan struct{})
	s.handle("/slow", func(e *exchange) {
		if len(e.in.Messages) > 1 {
			echo(e)
			return
		}
		e.begin()
		<-goOn
		e.emit(e.run(1)[middle:]...)
	})
	f = p.FollowAgent(t, "/v1/agents/"+agent+"/runs", kit.NewInput(kit.Marked("Slowly.")))
	f.UntilContent(t, 2)
	next := kit.UserMessage(kit.Marked("By the way."))
	resp, err := p.Post(t.Context(), "/v1/agents/"+agent+"/runs", f.In.NextRun("run-2", "steer", next))
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("steer: got %v, %v, want 202", resp, err)
	}
	_ = resp.Body.Close()
	close(goOn)
	f.Finish(t)
	return f, next.Content
}

// wantCancel cancels a run of slow, and checks that the partial text is kept and closed.
func wantCancel(t *testing.T, p *kit.Perdure, f *kit.Follower) {
	t.Helper()
	begun := time.Now()
	if status := p.Cancel(t, f.In); status >= 300 {
		t.Errorf("cancel: got %d", status)
	}
	f.Finish(t)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("the cancel took %s", took)
	}
	kit.WantOutcome(t, f, "cancelled")
	if got, want := texts(kit.ShownMessages(t, f.In.Messages, f.Events)), []string{saidIn(1) + "scouted", saidIn(1) + "begins, "}; !slices.Equal(got, want) {
		t.Errorf("texts = %q, want the partial text", got)
	}
	if got := texts(p.MessagesOf(t, f.In.ThreadID)); len(got) < 2 || got[1] != saidIn(1)+"begins, " {
		t.Errorf("texts in the log = %q, want the partial text", got)
	}
}

// TestForkOfRemoteThread: a fork has a thread of its own at the remote, with the messages until then.
func TestForkOfRemoteThread(t *testing.T) {
	t.Parallel()
	s := startFlakyServer(t)
	threads := make(chan string, 4)
	s.handle("/afar", func(e *exchange) {
		raw, _ := json.Marshal(e.in.Messages) // they were JSON
		threads <- e.in.ThreadID + " " + string(raw)
		echo(e)
	})
	p := startWith(t, strings.ReplaceAll(echoes, "SERVER", s.URL))
	in := kit.NewInput(kit.Marked("Say it."))
	p.RunAgent(t, "/v1/agents/afar/runs", in)
	resp, err := p.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/runs/run-1/fork", map[string]string{"threadId": in.ThreadID + "-fork"})
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("fork: got %v, %v, want 201", resp, err)
	}
	_ = resp.Body.Close()
	for _, thread := range []string{in.ThreadID, in.ThreadID + "-fork"} {
		next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("Again.")))
		next.ThreadID = thread
		p.RunAgent(t, "/v1/agents/afar/runs", next)
	}
	first, second, forked := <-threads, <-threads, <-threads
	id := func(s string) string { id, _, _ := strings.Cut(s, " "); return id }
	if id(first) != id(second) || id(first) == id(forked) {
		t.Errorf("threads at the remote = %s, %s and %s, want two equal ones and another", id(first), id(second), id(forked))
	}
	if !strings.Contains(forked, heard(in.Messages[0].Content)) {
		t.Errorf("messages of the fork = %s, want the earlier answer", forked)
	}
}

// TestEncryptedLog: an encrypted log has no content of a remote agent in plain text, and a broken run is
// continued from it.
func TestEncryptedLog(t *testing.T) {
	t.Parallel()
	s := startFlakyServer(t)
	s.handle("/afar", func(e *exchange) {
		if e.n == 1 {
			e.begin()
			return
		}
		e.finish()
	})
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "keys"), "base64key://AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	p := startWith(t, "name: afar\nremote: {url: "+s.URL+"/afar, retry: resume}\n", "PERDURE_ENCRYPTION_KEYS_FILE="+filepath.Join(dir, "keys"))
	in := kit.NewInput(kit.Marked("Say it."))
	f := p.FollowAgent(t, "/v1/agents/afar/runs", in)
	f.Finish(t)
	messages, state := wantRun(in, 1)
	wantThread(t, p, f, messages, state)
	kit.WantNoContent(t, "after a run", filepath.Dir(p.AddressFile()))
}

// TestTitleOfRemoteThread: the model for titles writes the title of a thread whose agent is remote.
func TestTitleOfRemoteThread(t *testing.T) {
	t.Parallel()
	_, p := startEchoes(t)
	in := kit.NewInput(kit.Marked("Say it."))
	title := kit.Marked("A title")
	kit.SharedModel.AnswerWith(t, "<message>\n"+in.Messages[0].Content, title)
	p.RunAgent(t, "/v1/agents/titled/runs", in)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		var thread struct{ Title string }
		if p.GetJSON(t, "/v1/threads/"+in.ThreadID, &thread); thread.Title == title {
			return
		}
		if time.Since(begun) > kit.WaitTimeout {
			t.Fatalf("title = %q, want %q", thread.Title, title)
		}
	}
}

// TestScheduledRemote: a schedule runs a remote agent.
func TestScheduledRemote(t *testing.T) {
	t.Parallel()
	s, p := startEchoes(t)
	request := func(method, path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, p.URL("/v1/schedules"+path), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode
	}
	if status := request(http.MethodPost, "", `{"id":"often","agent":"afar","intervals":[{"every":"1s"}],"input":{"messages":[{"role":"user","content":"`+kit.Mark+` each second"}]}}`); status >= 300 {
		t.Fatalf("schedule: got %d", status)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); len(s.received("/afar")) < 2; <-tick.C {
		if time.Since(begun) > kit.WaitTimeout {
			t.Fatal("the schedule has not run the agent twice")
		}
	}
	request(http.MethodDelete, "/often", "")
	var runs struct {
		Items []struct{ ThreadID string }
	}
	p.GetJSON(t, "/v1/threads", &runs)
	if len(runs.Items) < 2 {
		t.Errorf("threads = %+v, want one for each firing", runs)
	}
}
