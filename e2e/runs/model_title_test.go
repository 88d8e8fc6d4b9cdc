package runs

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// titledAgents have a model for titles.
const titledAgents = `name: assistant
model: openai/scripted-by-the-test
titleModel: openai/title-model
tools: [calculate]
approvals: [{tools: [calculate]}]
---
name: plain
model: openai/scripted-by-the-test
`

// setupTitled starts a process with agents that have a model for titles.
func setupTitled(t *testing.T) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env, p.Agents = []string{"PERDURE_PARK_AFTER=100ms"}, t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(titledAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// titleRequest returns the text with which the model for titles is called.
func titleRequest(in kit.Input) string { return "<message>\n" + in.Messages[0].Content }

// newTitled returns the input of a new thread whose title call gets these responses, one after the
// other.
func newTitled(t *testing.T, answer string, titles ...kit.Fixture) kit.Input {
	t.Helper()
	in := kit.NewInput(kit.Marked("How many days has a year?"))
	kit.SharedModel.AnswerInOrder(t, titleRequest(in), titles...)
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, answer)
	return in
}

// awaitTitleCall waits until the log has the note of a model call for a title.
func awaitTitleCall(t *testing.T, p *kit.Perdure, in kit.Input) {
	t.Helper()
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		records, err := p.Records(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Step == "title" && r.Kind == "events" {
				return
			}
		}
	}
}

// threadsWith returns the titles of the threads that a search finds.
func threadsWith(t *testing.T, p *kit.Perdure, text string) (titles []string) {
	t.Helper()
	var list struct{ Items []struct{ Title string } }
	p.GetJSON(t, "/v1/threads?q="+url.QueryEscape(text), &list)
	for _, item := range list.Items {
		titles = append(titles, item.Title)
	}
	return titles
}

// awaitTitle waits until a search for a title finds the thread.
func awaitTitle(t *testing.T, p *kit.Perdure, in kit.Input, title string) {
	t.Helper()
	for end := time.Now().Add(kit.WaitTimeout); len(threadsWith(t, p, title)) == 0; {
		if time.Now().After(end) {
			t.Fatalf("search for the title %q: got no thread", title)
		}
	}
	var thread struct{ Title string }
	p.GetJSON(t, "/v1/threads/"+in.ThreadID, &thread)
	if thread.Title != title {
		t.Errorf("title of the thread = %q, want %q", thread.Title, title)
	}
}

// awaitTitleEnd waits until the workflow that has the title of a thread written has closed.
func awaitTitleEnd(t *testing.T, p *kit.Perdure, in kit.Input) {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.GetWorkflow(t.Context(), runs.TitleWorkflowID("thread/default/"+in.ThreadID), "").Get(t.Context(), nil); err != nil {
		t.Errorf("workflow of the title: got %v, want no error", err)
	}
}

// usageOf returns the usage of a model in the report.
type usageOf struct {
	Model        string
	Runs         int
	InputTokens  int
	OutputTokens int
}

// TestTitleCallSurvivesKill: the process is killed during the model call for a title, after the run has
// ended. The next one writes the title, and both calls are in the report of usage. The end of the run
// does not wait for the title.
func TestTitleCallSurvivesKill(t *testing.T) {
	p := setupTitled(t)
	title := kit.Marked("Days of a year")
	in := newTitled(t, kit.Marked("365."), kit.SlowAnswer(kit.LongText(4000)), kit.FastAnswer("\""+title+"\"\n"))
	f := p.Follow(t, in)
	awaitTitleCall(t, p, in)
	f.Finish(t)
	kit.WantOutcome(t, f, "success")
	if got := threadsWith(t, p, in.Messages[0].Content); len(got) != 1 || got[0] != in.Messages[0].Content {
		t.Errorf("titles after the end of the run: got %q, want that of the first message", got)
	}
	p.Kill()
	p.Start(t)
	awaitTitle(t, p, in, title)
	awaitTitleEnd(t, p, in)
	if n := len(kit.SharedModel.Calls(t, titleRequest(in))); n != 2 {
		t.Errorf("calls of the model for titles = %d, want the one that was killed and another one", n)
	}
	var report struct{ Items []usageOf }
	p.GetJSON(t, "/v1/usage?groupBy=model", &report)
	found := false
	for _, item := range report.Items {
		if item.Model == "openai/title-model" || item.InputTokens > 0 && item.Runs == 0 {
			found = true
			if item.Runs != 0 || item.InputTokens < 100 || item.OutputTokens == 0 {
				t.Errorf("usage of the model for titles = %+v, want two calls and no run", item)
			}
		}
	}
	if !found {
		t.Errorf("report of usage = %+v, want the model for titles", report.Items)
	}

	next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("And a leap year?")))
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, kit.Marked("366."))
	p.Run(t, next)
	awaitTitle(t, p, in, title)
	if n := len(kit.SharedModel.Calls(t, "<message>\n"+next.Messages[1].Content)); n != 0 {
		t.Errorf("calls of the model for titles in the second run = %d, want 0", n)
	}
}

// TestTitleOfWaitingThread: the title is written while the thread waits for an approval and is
// parked. A title that a caller has given is kept.
func TestTitleOfWaitingThread(t *testing.T) {
	p := setupTitled(t)
	title, no, yes := kit.Marked("Sums"), false, true
	in := kit.NewInput(kit.Marked("How much is 6*7?"))
	kit.SharedModel.AnswerInOrder(t, titleRequest(in), kit.Fixture{Response: kit.Response{Content: title}, ChunkSize: 4, Latency: 200})
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}}},
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("42.")}})
	f := p.Follow(t, in)
	f.Finish(t)
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	awaitTitle(t, p, in, title)
	f.Approve(t)
	resp := p.RequestAs(t, "", http.MethodPut, "/v1/threads/"+in.ThreadID+"/title", map[string]string{"title": kit.Mark + " mine"})
	_ = resp.Body.Close()
	awaitTitle(t, p, in, kit.Mark+" mine")
	awaitTitleEnd(t, p, in)
}

// TestCancelEndsTitleCall: a cancel of the run ends the model call for the title, too. The thread
// keeps the title of its first message.
func TestCancelEndsTitleCall(t *testing.T) {
	p := setupTitled(t)
	in := kit.NewInput(kit.Marked("Count the stars."))
	kit.SharedModel.AnswerInOrder(t, titleRequest(in), kit.SlowAnswer(kit.LongText(4000)))
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.Response{Content: kit.LongText(4000)}, ChunkSize: 8, Latency: 25})
	f := p.Follow(t, in)
	f.UntilContent(t, 3)
	awaitTitleCall(t, p, in)
	if status := p.Cancel(t, in); status != http.StatusAccepted {
		t.Fatalf("cancel: got %d, want %d", status, http.StatusAccepted)
	}
	f.Finish(t)
	kit.WantOutcome(t, f, "cancelled")
	awaitTitleEnd(t, p, in)
	awaitTitle(t, p, in, in.Messages[0].Content)
}

// TestDeletedThreadGetsNoTitle: a thread that is deleted during the model call for its title stays
// deleted, and a new thread with its ID has its own title. An agent without a model for titles has
// none written.
func TestDeletedThreadGetsNoTitle(t *testing.T) {
	p := setupTitled(t)
	old := kit.Marked("Old title")
	in := newTitled(t, kit.Marked("365."), kit.Fixture{Response: kit.Response{Content: old}, ChunkSize: 4, Latency: 200})
	f := p.Follow(t, in)
	awaitTitleCall(t, p, in)
	f.Finish(t)
	if status := p.Delete(t, in.ThreadID); status != http.StatusNoContent {
		t.Fatalf("delete: got %d, want %d", status, http.StatusNoContent)
	}
	anew := kit.NewInput(kit.Marked("Who are you?"))
	anew.ThreadID = in.ThreadID
	kit.SharedModel.AnswerWith(t, anew.Messages[0].Content, kit.Marked("Nobody."))
	g := p.FollowAgent(t, "/v1/agents/plain/runs", anew)
	g.Finish(t)
	if got := threadsWith(t, p, kit.Mark); len(got) != 1 || got[0] != anew.Messages[0].Content {
		t.Errorf("titles of all threads = %q, want that of the new thread", got)
	}
	if n := len(kit.SharedModel.Calls(t, titleRequest(anew))); n != 0 {
		t.Errorf("calls of the model for titles = %d, want 0: the agent has none", n)
	}
}
