package remote

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestLangGraphInterrupts: interrupts of a graph, in either form of AG-UI's adapter, are approved from
// the inbox after perdure was killed. The graph continues with each answer at its place, and its
// checkpoint has the messages of the log.
func TestLangGraphInterrupts(t *testing.T) {
	t.Parallel()
	s := startLangGraph(t)
	cases := map[string]struct {
		path, message, then string
		answers             map[string]string // by question
	}{
		"text":             {"ask", "go", `The answer is "yes".`, map[string]string{"Really?": `"yes"`}},
		"text-outcome":     {"ask?outcome", "go", `The answer is "yes".`, map[string]string{"Really?": `"yes"`}},
		"parallel":         {"askBoth", "go", `First: 1.|Second: 2.`, map[string]string{"First?": "1", "Second?": "2"}},
		"parallel-outcome": {"askBoth?outcome", "go", `First: 1.|Second: 2.`, map[string]string{"First?": "1", "Second?": "2"}},
		"tool":             {"chat", "use book", `booked 0: {"ok":true}`, map[string]string{"Book 0?": `{"ok":true}`}},
		"tool-outcome":     {"chat?outcome", "use book", `booked 0: {"ok":true}`, map[string]string{"Book 0?": `{"ok":true}`}},
	}
	var definitions []string
	for name, c := range cases {
		definitions = append(definitions, fmt.Sprintf("name: %s\nremote: {url: 'http://%s/%s'}\n", name, s.Address, c.path))
	}
	p := kit.SetupWith(t, strings.Join(definitions, "---\n"))
	inputs, asked := map[string]kit.Input{}, map[string][]kit.Interrupt{}
	for name, c := range cases {
		in := kit.NewInput(c.message)
		f := p.FollowAgent(t, "/v1/agents/"+name+"/runs", in)
		f.Finish(t)
		inputs[name], asked[name] = in, kit.InterruptsOf(t, f.Events)
	}
	p.Kill()
	p.Start(t)
	for name, c := range cases {
		in := inputs[name]
		if len(asked[name]) != len(c.answers) {
			t.Fatalf("%s: interrupts = %+v, want those of %v", name, asked[name], c.answers)
		}
		thread := p.FollowThread(t, in)
		for _, interrupt := range asked[name] {
			item := p.AwaitInboxItem(t, in, interrupt.ID)
			body := fmt.Sprintf(`{"decision":"answer","content":%s}`, c.answers[item["message"].(string)])
			if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, interrupt.ID, body); status != http.StatusOK {
				t.Fatalf("%s: answer to %v: %d %v", name, item["message"], status, answer)
			}
		}
		thread.UntilSuccess(t)
		var told []string
		for _, m := range p.MessagesOf(t, in.ThreadID) {
			told = append(told, m.Content)
		}
		for _, want := range strings.Split(c.then, "|") {
			if !slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, want) }) {
				t.Errorf("%s: messages = %q, want %q", name, told, want)
			}
		}
		if c.path != "askBoth" && c.path != "askBoth?outcome" { // its checkpoint has no order of its own
			s.wantCheckpoint(t, p, name, in.ThreadID)
		}
	}
}
