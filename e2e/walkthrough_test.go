package e2e

import (
	"slices"
	"strings"
	"testing"
)

// People decide, and a page's own tools answer, in CopilotKit, while what is behind it dies between
// question and answer: the api, the worker, or everything.
func TestCopilotKitWaits(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (at *endpoint, kill func()){
		"nothing": func(*testing.T) (*endpoint, func()) { return shared.endpoint, func() {} },
		"everything": func(t *testing.T) (*endpoint, func()) {
			p := startPerdure(t)
			return p.endpoint, func() {
				p.kill()
				p.start(t)
			}
		},
		"api": func(t *testing.T) (*endpoint, func()) {
			c := startCluster(t)
			front := c.startAPI(t)
			c.startWorker(t)
			at := newEndpoint(c.threads)
			at.leadTo(t, front)
			return at, func() {
				at.down()
				front.kill()
				front = c.startAPI(t)
				at.leadTo(t, front)
			}
		},
		"worker": func(t *testing.T) (*endpoint, func()) {
			c := startCluster(t)
			front := c.startAPI(t)
			worker := c.startWorker(t)
			return front.endpoint, func() {
				worker.kill()
				worker = c.startWorker(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, kill := open(t)
			front := at.url("") // of what stays where it is
			if name != "nothing" {
				front = at.proxy(t)
			}
			killed := func() {
				at.awaitAnswers()
				kill()
			}
			kit := launchCopilotKit(t, "careful", front+careful, "clerk", front+"/v1/agents/clerk/runs")
			decidesInBrowser(t, at, kit, killed, false)
			decidesInBrowser(t, at, kit, killed, true)
			answersInBrowser(t, at, kit, killed)
		})
	}
}

// leadTo lets requests go to an api.
func (p *endpoint) leadTo(t *testing.T, to *gateway) {
	t.Helper()
	where, err := to.addresses(t.Context())
	if err == nil {
		err = p.serves(t.Context(), where)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// decidesInBrowser has a page asked about two calls of three, and answer. The page resumes under a
// new run id or, if sameRun, under that of the run that asked; and in either case it shows results
// of its own making for the calls that it was asked about, which must not stay.
func decidesInBrowser(t *testing.T, at *endpoint, kit copilotKit, kill func(), sameRun bool) {
	t.Helper()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7", "1+1", "70+7")
	thread := newThread()
	at.threads.use(thread)
	page := kit.open(t, "careful", thread, "")
	asked := page.tell(t, map[string]any{"say": user(prompt)})
	if len(asked.Interrupts) != 2 || len(asked.Messages) != 3 || asked.Messages[2].Content != "2" {
		t.Fatalf("the page is asked %+v and shows %+v", asked.Interrupts, asked.Messages)
	}
	kill()
	end := page.tell(t, map[string]any{"sameRun": sameRun, "decide": map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "100+1"}}})
	if (end.Run == asked.Run) != sameRun {
		t.Errorf("the run %s was resumed as %s", asked.Run, end.Run)
	}
	wantMessages(t, []message{
		{Role: "user", Content: prompt},
		callsTools(
			modelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}, modelCall{Name: "calculate", Arguments: `{"expression":"1+1"}`},
			modelCall{Name: "calculate", Arguments: `{"expression":"100+1"}`}),
		result("101"), result("2"), result("101"), says(done),
	}, byCall(end.Messages))
	heard := slices.Sorted(slices.Values(resultsOf(t, prompt)))
	if n := len(sharedModel.calls(t, prompt)); n != 2 || !slices.Equal(heard, []string{"101", "101", "2"}) {
		t.Errorf("the model was called %d times and heard %q", n, heard)
	}
}

// answersInBrowser has a page's tool called, which answers after the kill.
func answersInBrowser(t *testing.T, at *endpoint, kit copilotKit, kill func()) {
	t.Helper()
	prompt, done, yes, no := say("Ask me."), say("Thank you."), true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{
			{Name: "pick_color", Arguments: `{"of":"sky"}`}, {Name: "calculate", Arguments: `{"expression":"6*7"}`},
		}}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: done}})
	thread := newThread()
	at.threads.use(thread)
	page := kit.open(t, "clerk", thread, "pick_color")
	called := page.tell(t, map[string]any{"say": user(prompt)})
	if called.Type != "tool" || !strings.Contains(string(called.Args), `"sky"`) {
		t.Fatalf("the page is told %+v", called)
	}
	kill()
	blue := say("blue")
	end := page.tell(t, map[string]any{"result": blue})
	wantMessages(t, []message{
		{Role: "user", Content: prompt},
		callsTools(modelCall{Name: "pick_color", Arguments: `{"of":"sky"}`}, modelCall{Name: "calculate", Arguments: `{"expression":"6*7"}`}),
		result(blue), result("42"), says(done),
	}, byCall(end.Messages))
	heard := slices.Sorted(slices.Values(resultsOf(t, prompt)))
	if n := len(sharedModel.calls(t, prompt)); n != 2 || !slices.Equal(heard, slices.Sorted(slices.Values([]string{"42", blue}))) {
		t.Errorf("the model was called %d times and heard %q", n, heard)
	}
}
