package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const orders = "/v1/agents/order/runs"

// ownWorker is the worker of an example that is a module of its own, and the only one that its node
// has.
type ownWorker struct {
	*perdure
	file   string
	args   []string
	env    []string
	said   output
	worker *process
}

// startOwnWorker starts the worker of a folder of examples, with arguments and variables, and its
// node.
func startOwnWorker(t *testing.T, example string, args, env []string) *ownWorker {
	t.Helper()
	w := &ownWorker{
		perdure: newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel), file: filepath.Join(t.TempDir(), example), args: args, env: env,
	}
	w.flags = []string{"--no-worker"}
	if err := execute(filepath.Join("..", "examples", example), "go", "build", "-o", w.file, "."); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	t.Cleanup(func() { // its histories can be replayed by its own worker only, which it was by each kill
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	w.startWorker(t)
	t.Cleanup(func() {
		if err := w.worker.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of the worker:\n%s", w.said.String())
		}
	})
	t.Cleanup(func() {
		if err := w.saveHistories(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *ownWorker) startWorker(t *testing.T) {
	t.Helper()
	cmd := exec.Command(w.file, w.args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+w.where.NATS, "TEMPORAL_ADDRESS="+w.where.Temporal)
	cmd.Env = append(cmd.Env, w.env...)
	var err error
	if w.worker, err = launch(t.Context(), cmd, &w.said, func(line []byte) bool { return bytes.Contains(line, []byte(`"working"`)) }); err != nil {
		t.Fatal(err)
	}
}

// restartWorker kills the worker, and starts it again.
func (w *ownWorker) restartWorker(t *testing.T) {
	t.Helper()
	w.worker.kill()
	w.startWorker(t)
}

// called returns the tools that a client has seen called, in their order, with their results.
func called(t *testing.T, events []event) (calls []string) {
	t.Helper()
	for _, e := range events {
		switch e.Type {
		case "TOOL_CALL_START":
			calls = append(calls, e.member("toolCallName"))
		case "TOOL_CALL_RESULT":
			calls = append(calls, e.member("content"))
		}
	}
	return calls
}

// An agent that is written as a workflow, in a module of its own, with tools and activities of its
// own: it asks in the middle of its code, its worker is killed, and the code goes on in the run
// that has the answer. What it has done is undone by ordinary code if the answer is no.
func TestProgramOfAnotherModule(t *testing.T) {
	t.Parallel()
	w := startOwnWorker(t, "programs", nil, nil)
	cheap := newInput("lamp")
	if got := strings.Join(called(t, w.runAgent(t, orders, cheap)), " "); got != `reserve {"number":"R-lamp"} ship R-lamp is on its way` {
		t.Errorf("for a lamp it has called %s", got)
	}
	for _, c := range []struct{ decision, then string }{
		{`{"decision":"approve"}`, "Approved. ship R-candlestick is on its way"},
		{`{"decision":"reject"}`, "A person did not approve this call. It was not made. release R-candlestick is released"},
	} {
		in := newInput("candlestick")
		f := w.followAgent(t, orders, in)
		f.finish(t)
		asked, seen := interruptsOf(t, f.events), len(f.events)
		if len(asked) != 1 || asked[0].Message != "Ship candlestick for 110 euros?" {
			t.Fatalf("it asks %+v", asked)
		}
		w.restartWorker(t)
		if status, a := decide(t, w.endpoint, in.ThreadID, asked[0].ID, c.decision); status != http.StatusOK {
			t.Fatalf("%s: %d %v", c.decision, status, a)
		}
		f.view = "/v1/threads/" + in.ThreadID + "/events"
		f.until(t, event.terminal)
		if got := strings.Join(called(t, f.events[seen:]), " "); got != c.then {
			t.Errorf("%s: it has called %s", c.decision, got)
		}
	}
}
