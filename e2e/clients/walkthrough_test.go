package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// People decide, and a page's own tools answer, in CopilotKit, while what is behind it dies between
// question and answer: the api, the worker, or everything.
func TestCopilotKitWaits(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (at *kit.Endpoint, kill func()){
		"nothing": func(*testing.T) (*kit.Endpoint, func()) { return kit.Shared.Endpoint, func() {} },
		"everything": func(t *testing.T) (*kit.Endpoint, func()) {
			p := kit.Setup(t)
			return p.Endpoint, func() {
				p.Kill()
				p.Start(t)
			}
		},
		"api": func(t *testing.T) (*kit.Endpoint, func()) {
			c := kit.SetupCluster(t)
			front := c.StartAPI(t)
			c.StartWorker(t)
			at := kit.NewEndpoint(c.Threads)
			at.LeadTo(t, front)
			return at, func() {
				at.Down()
				front.Kill()
				front = c.StartAPI(t)
				at.LeadTo(t, front)
			}
		},
		"worker": func(t *testing.T) (*kit.Endpoint, func()) {
			c := kit.SetupCluster(t)
			front := c.StartAPI(t)
			worker := c.StartWorker(t)
			return front.Endpoint, func() {
				worker.Kill()
				worker = c.StartWorker(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, kill := open(t)
			front := at.Url("") // of what stays where it is
			if name != "nothing" {
				front = at.Proxy(t)
			}
			killed := func() {
				at.AwaitAnswers()
				kill()
			}
			page := kit.LaunchCopilotKit(t, "careful", front+kit.Careful, "clerk", front+"/v1/agents/clerk/runs")
			decidesInBrowser(t, at, page, killed, false)
			decidesInBrowser(t, at, page, killed, true)
			answersInBrowser(t, at, page, killed)
		})
	}
}

// decidesInBrowser has a page asked about two calls of three, and answer. The page resumes under a
// new run id or, if sameRun, under that of the run that asked; and in either case it shows results
// of its own making for the calls that it was asked about, which must not stay.
func decidesInBrowser(t *testing.T, at *kit.Endpoint, runtime kit.CopilotKit, kill func(), sameRun bool) {
	t.Helper()
	prompt, done := kit.Say("Work it out."), kit.Say("There.")
	kit.WorksOut(t, prompt, done, "7+7", "1+1", "70+7")
	thread := kit.NewThread()
	at.Threads.Use(thread)
	page := runtime.Open(t, "careful", thread, "")
	asked := page.Tell(t, map[string]any{"say": kit.User(prompt)})
	if len(asked.Interrupts) != 2 || len(asked.Messages) != 3 || asked.Messages[2].Content != "2" {
		t.Fatalf("the page is asked %+v and shows %+v", asked.Interrupts, asked.Messages)
	}
	kill()
	end := page.Tell(t, map[string]any{"sameRun": sameRun, "decide": map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "100+1"}}})
	if (end.Run == asked.Run) != sameRun {
		t.Errorf("the run %s was resumed as %s", asked.Run, end.Run)
	}
	kit.WantMessages(t, []kit.Message{
		{Role: "user", Content: prompt},
		kit.CallsTools(
			kit.ModelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}, kit.ModelCall{Name: "calculate", Arguments: `{"expression":"1+1"}`},
			kit.ModelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}),
		kit.Result("101"), kit.Result("2"), kit.Result("101"), kit.Says(done),
	}, kit.ByCall(end.Messages))
	heard := slices.Sorted(slices.Values(kit.ResultsOf(t, prompt)))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 || !slices.Equal(heard, []string{"101", "101", "2"}) {
		t.Errorf("the model was called %d times and heard %q", n, heard)
	}
}

// answersInBrowser has a page's tool called, which answers after the kill.
func answersInBrowser(t *testing.T, at *kit.Endpoint, runtime kit.CopilotKit, kill func()) {
	t.Helper()
	prompt, done, yes, no := kit.Say("Ask me."), kit.Say("Thank you."), true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
			{Name: "pick_color", Arguments: `{"of":"sky"}`}, {Name: "calculate", Arguments: `{"expression":"6*7"}`},
		}}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
	thread := kit.NewThread()
	at.Threads.Use(thread)
	page := runtime.Open(t, "clerk", thread, "pick_color")
	called := page.Tell(t, map[string]any{"say": kit.User(prompt)})
	if called.Type != "tool" || !strings.Contains(string(called.Args), `"sky"`) {
		t.Fatalf("the page is told %+v", called)
	}
	kill()
	blue := kit.Say("blue")
	end := page.Tell(t, map[string]any{"result": blue})
	kit.WantMessages(t, []kit.Message{
		{Role: "user", Content: prompt},
		kit.CallsTools(kit.ModelCall{Name: "pick_color", Arguments: `{"of":"sky"}`}, kit.ModelCall{Name: "calculate", Arguments: `{"expression":"6*7"}`}),
		kit.Result(blue), kit.Result("42"), kit.Says(done),
	}, kit.ByCall(end.Messages))
	heard := slices.Sorted(slices.Values(kit.ResultsOf(t, prompt)))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 || !slices.Equal(heard, slices.Sorted(slices.Values([]string{"42", blue}))) {
		t.Errorf("the model was called %d times and heard %q", n, heard)
	}
}
