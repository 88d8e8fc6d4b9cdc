package remote

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// askingGraphs are remote agents whose graphs ask a person, in both forms of the adapter.
const askingGraphs = `---
name: asks
remote: {url: "http://%[2]s/ask"}
---
name: books
remote: {url: "http://%[2]s/chat?outcome"}
`

// TestRemoteInterruptsOnCluster: graphs ask a person, and all workers are killed. The decisions are sent to
// another API, one of them while the next workers start.
func TestRemoteInterruptsOnCluster(t *testing.T) {
	t.Parallel()
	f := startFrameworks(t, askingGraphs)
	cases := []struct{ agent, message, answer, then string }{
		{"asks", "go", `"yes"`, `The answer is "yes".`},
		{"books", "use book", `{"ok":true}`, `booked 0: {"ok":true}`},
	}
	var inputs []kit.Input
	var asked []string
	for _, c := range cases {
		in := kit.NewInput(c.message)
		reader := f.front.FollowAgent(t, "/v1/agents/"+c.agent+"/runs", in)
		reader.Finish(t)
		inputs, asked = append(inputs, in), append(asked, kit.InterruptsOf(t, reader.Events)[0].ID)
	}
	for _, w := range f.workers {
		w.Kill()
	}
	f.front.Down()
	f.api.Kill()
	f.startAPI(t)
	early := make(chan int, 1)
	decide := func(i int) int {
		f.front.AwaitInboxItem(t, inputs[i], asked[i])
		status, answer := kit.Decide(t, f.front, inputs[i].ThreadID, asked[i], fmt.Sprintf(`{"decision":"answer","content":%s}`, cases[i].answer))
		if status != http.StatusOK {
			t.Errorf("answer to %s: %d %v", cases[i].agent, status, answer)
		}
		return status
	}
	go func() { early <- decide(0) }()
	f.workers = []*kit.Process{f.StartWorker(t), f.StartWorker(t)}
	<-early
	decide(1)
	for i, c := range cases {
		f.front.FollowThread(t, inputs[i]).UntilSuccess(t)
		told := f.front.MessagesOf(t, inputs[i].ThreadID)
		if !slices.ContainsFunc(told, func(m kit.Message) bool { return strings.Contains(m.Content, c.then) }) {
			t.Errorf("messages of %s = %+v, want %q", c.agent, told, c.then)
		}
		f.langGraph.wantCheckpoint(t, f.front, c.agent, inputs[i].ThreadID)
	}
}
