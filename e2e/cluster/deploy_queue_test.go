package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// queueAgent is an agent with a tool that only the workers of a task queue run.
const queueAgent = `name: cashier
model: openai/scripted-by-the-test
tools: [open_drawer]
---
kind: tool
name: open_drawer
description: Opens a drawer.
parameters: {type: object, required: [number], properties: {number: {type: integer}}}
http: {method: POST, url: "%s", headers: {Authorization: "Bearer ${secret:SHOP_TOKEN}"}}
taskQueue: till
`

// setupQueueDeployment starts an API on its own servers, and a tool server that reports each call
// on opened and answers when goOn is closed.
func setupQueueDeployment(t *testing.T) (d *deployment, opened chan string, goOn chan struct{}) {
	t.Helper()
	opened, goOn = make(chan string, 8), make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		opened <- string(body)
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	c := kit.SetupCluster(t)
	c.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Agents, "all.yaml"), fmt.Appendf(nil, queueAgent, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Env = append(c.Env, "PERDURE_AGENTS="+c.Agents, "PERDURE_ALLOW_PRIVATE_HOSTS=true")
	d = &deployment{Cluster: c, api: c.StartAPI(t), workers: map[string]string{}}
	var err error
	if d.temporal, err = d.api.DialTemporal(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.temporal.Close)
	return d, opened, goOn
}

// TestDeployToolsOfQueue: a version is deployed while a tool on its own queue is being called. The
// call ends on the old worker, and the run moves to the new version between two turns. Its next
// call goes to the new version's workers of the queue or, if these have no versions, to them. Each
// call is made once, and the old workers can stop.
func TestDeployToolsOfQueue(t *testing.T) {
	t.Parallel()
	for name, versioned := range map[string]bool{"versioned": true, "without versions": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, opened, goOn := setupQueueDeployment(t)
			settings := []string{"PERDURE_TASK_QUEUES=till", "PERDURE_TOOLS_ONLY=true", "PERDURE_SECRET_SHOP_TOKEN=" + kit.WorkerSecret, "PERDURE_PROMOTE=false"}
			if !versioned {
				settings = append(settings, "PERDURE_DEPLOYMENT=", "PERDURE_BUILD_ID=")
			}
			old := []*kit.Process{d.startVersion(t, "till", "v1", settings...), d.startVersion(t, "old", "v1")}
			prompt, done := kit.Marked("Open the drawers."), kit.Marked("Open.")
			open := func(n int) kit.Fixture {
				return kit.Fixture{Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "open_drawer", Arguments: fmt.Sprintf(`{"number":%d}`, n)}}}}
			}
			kit.SharedModel.AnswerInOrder(t, prompt, open(1), open(2), kit.FastAnswer(done))
			in := kit.NewInput(prompt)
			f := d.api.FollowAgent(t, "/v1/agents/cashier/runs", in)
			wantOpened(t, f, opened, 1)
			want := []string{"v1: old till", "v2: new till"}
			if versioned {
				want[1] = "v2: new new till"
				d.startVersion(t, "new till", "v2", settings...)
			} else {
				old = old[1:]
			}
			d.startVersion(t, "new", "v2")
			goOn <- struct{}{}
			wantOpened(t, f, opened, 2)
			var leaving errgroup.Group
			for _, p := range old {
				leaving.Go(p.Stop)
			}
			if err := leaving.Wait(); err != nil {
				t.Error(err)
			}
			goOn <- struct{}{}
			f.Finish(t)
			if last := f.Events[len(f.Events)-1]; kit.Outcome(last) != "success" || len(opened) > 0 {
				t.Errorf("end of the run = %s with %d more drawers, want success without any", last.Data, len(opened))
			}
			if got := d.trace(t, in); !slices.Equal(got, want) {
				t.Errorf("worked on by %q, want %q", got, want)
			}
		})
	}
}

// wantOpened waits until the tool server is called.
func wantOpened(t *testing.T, f *kit.Follower, opened chan string, number int) {
	t.Helper()
	select {
	case got := <-opened:
		if want := fmt.Sprintf(`{"number":%d}`, number); got != want {
			t.Errorf("opened is %s, want %s", got, want)
		}
	case <-f.Ctx.Done():
		t.Fatalf("drawer %d is not opened", number)
	}
}
