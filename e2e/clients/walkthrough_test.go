package clients

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestCopilotKitInterrupts: people decide and client tools answer in CopilotKit while the API, the
// worker or the whole process is killed between question and answer.
func TestCopilotKitInterrupts(t *testing.T) {
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
			at.RouteTo(t, front)
			return at, func() {
				at.Down()
				front.Kill()
				front = c.StartAPI(t)
				at.RouteTo(t, front)
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
			front := at.URL("") // an address that stays the same
			if name != "nothing" {
				front = at.Proxy(t)
			}
			killed := func() {
				at.AwaitResponses()
				kill()
			}
			page := kit.StartCopilotKit(t, "careful", front+kit.CarefulPath, "clerk", front+"/v1/agents/clerk/runs")
			decidesInBrowser(t, at, page, killed, false)
			decidesInBrowser(t, at, page, killed, true)
			answersInBrowser(t, at, page, killed)
		})
	}
}

// decidesInBrowser makes a page decide two calls of three. The page resumes under a new run id or,
// if sameRun, under the id of the run that asked. It adds its own results for the decided calls,
// which must not stay.
func decidesInBrowser(t *testing.T, at *kit.Endpoint, runtime kit.CopilotKit, kill func(), sameRun bool) {
	t.Helper()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7", "1+1", "70+7")
	thread := kit.NewThread()
	at.Threads.Add(thread)
	page := runtime.Open(t, "careful", thread, "")
	asked := page.Do(t, map[string]any{"say": kit.UserMessage(prompt)})
	if len(asked.Interrupts) != 2 || len(asked.Messages) != 3 || asked.Messages[2].Content != "2" {
		t.Fatalf("page: interrupts = %+v, messages = %+v, want 2 and 3", asked.Interrupts, asked.Messages)
	}
	kill()
	end := page.Do(t, map[string]any{"sameRun": sameRun, "decide": map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "100+1"}}})
	if (end.Run == asked.Run) != sameRun {
		t.Errorf("run %s was resumed as %s, want the same: %t", asked.Run, end.Run, sameRun)
	}
	kit.WantMessages(t, []kit.Message{
		{Role: "user", Content: prompt},
		kit.ToolCallMessage(
			kit.ModelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}, kit.ModelCall{Name: "calculate", Arguments: `{"expression":"1+1"}`},
			kit.ModelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}),
		kit.ToolMessage("101"), kit.ToolMessage("2"), kit.ToolMessage("101"), kit.AssistantMessage(done),
	}, kit.ByCall(end.Messages))
	heard := slices.Sorted(slices.Values(kit.ToolResultsSent(t, prompt)))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 || !slices.Equal(heard, []string{"101", "101", "2"}) {
		t.Errorf("number of model calls = %d with the messages %q, want 2 with 101, 101 and 2", n, heard)
	}
}

// answersInBrowser makes the model call a page's tool, which answers after the kill.
func answersInBrowser(t *testing.T, at *kit.Endpoint, runtime kit.CopilotKit, kill func()) {
	t.Helper()
	prompt, done, yes, no := kit.Marked("Ask me."), kit.Marked("Thank you."), true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{
			{Name: "pick_color", Arguments: `{"of":"sky"}`}, {Name: "calculate", Arguments: `{"expression":"6*7"}`},
		}}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: done}})
	thread := kit.NewThread()
	at.Threads.Add(thread)
	page := runtime.Open(t, "clerk", thread, "pick_color")
	called := page.Do(t, map[string]any{"say": kit.UserMessage(prompt)})
	if called.Type != "tool" || !strings.Contains(string(called.Args), `"sky"`) {
		t.Fatalf("line of the page = %+v, want the call with the argument sky", called)
	}
	kill()
	blue := kit.Marked("blue")
	end := page.Do(t, map[string]any{"result": blue})
	kit.WantMessages(t, []kit.Message{
		{Role: "user", Content: prompt},
		kit.ToolCallMessage(kit.ModelCall{Name: "pick_color", Arguments: `{"of":"sky"}`}, kit.ModelCall{Name: "calculate", Arguments: `{"expression":"6*7"}`}),
		kit.ToolMessage(blue), kit.ToolMessage("42"), kit.AssistantMessage(done),
	}, kit.ByCall(end.Messages))
	heard := slices.Sorted(slices.Values(kit.ToolResultsSent(t, prompt)))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 || !slices.Equal(heard, slices.Sorted(slices.Values([]string{"42", blue}))) {
		t.Errorf("number of model calls = %d with the messages %q, want 2 with 42 and the color", n, heard)
	}
}
