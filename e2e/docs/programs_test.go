package docs

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const orders = "/v1/agents/order/runs"

// ownWorker is the worker of an example in its own Go module, and its API. It is the only worker.
type ownWorker struct {
	*kit.Perdure
	file   string
	args   []string
	env    []string
	said   kit.Output
	worker *kit.Process
}

// startOwnWorker starts the worker of an example with arguments and variables, and an API.
func startOwnWorker(t *testing.T, example string, args, env []string) *ownWorker {
	t.Helper()
	file := filepath.Join(t.TempDir(), example)
	if err := kit.Build(filepath.Join("..", "examples", example), file, "."); err != nil {
		t.Fatal(err)
	}
	return startWorkerProgram(t, &ownWorker{file: file, args: args, env: env}, "")
}

// startWorkerProgram starts a worker whose program was built, and an API with a folder of
// definitions; "" = none.
func startWorkerProgram(t *testing.T, w *ownWorker, definitions string) *ownWorker {
	t.Helper()
	w.Perdure = kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	w.Flags = []string{"--no-worker"}
	if definitions != "" {
		w.Agents = definitions
	}
	w.Start(t)
	t.Cleanup(func() { // only its own worker can replay its histories, and has done so after each kill
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.startWorker(t)
	t.Cleanup(func() {
		if err := w.worker.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of the worker:\n%s", w.said.String())
		}
	})
	t.Cleanup(func() {
		if err := w.SaveHistories(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

// startWorker starts the worker of another module.
func (w *ownWorker) startWorker(t *testing.T) {
	t.Helper()
	cmd := exec.Command(w.file, w.args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+w.Addrs.NATS, "TEMPORAL_ADDRESS="+w.Addrs.Temporal)
	cmd.Env = append(cmd.Env, w.env...)
	var err error
	if w.worker, err = kit.Launch(t.Context(), cmd, &w.said, func(line []byte) bool { return bytes.Contains(line, []byte(`"working"`)) }); err != nil {
		t.Fatal(err)
	}
}

// restartWorker kills the worker and starts it again.
func (w *ownWorker) restartWorker(t *testing.T) {
	t.Helper()
	w.worker.Kill()
	w.startWorker(t)
}

// called returns the tool calls that a client has seen, in order, with their results.
func called(t *testing.T, events []kit.Event) (calls []string) {
	t.Helper()
	for _, e := range events {
		switch e.Type {
		case "TOOL_CALL_START":
			calls = append(calls, e.Member("toolCallName"))
		case "TOOL_CALL_RESULT":
			calls = append(calls, e.Member("content"))
		}
	}
	return calls
}

// TestProgramOfOtherModule: an agent that is a workflow function, in its own module with tools
// and activities, asks in the middle of its code. Its worker is killed, and the code continues in
// the run with the answer. If the answer is no, ordinary code undoes what it has done.
func TestProgramOfOtherModule(t *testing.T) {
	t.Parallel()
	w := startOwnWorker(t, "programs", nil, nil)
	cheap := kit.NewInput("lamp")
	if got := strings.Join(called(t, w.RunAgent(t, orders, cheap)), " "); got != `reserve {"number":"R-lamp"} ship R-lamp is on its way` {
		t.Errorf("calls for a lamp = %s, want a reservation and a shipment", got)
	}
	for _, c := range []struct{ decision, wantCalls string }{
		{`{"decision":"approve"}`, "Approved. ship R-candlestick is on its way"},
		{`{"decision":"reject"}`, "The approver rejected this call. It was not made. release R-candlestick is released"},
	} {
		in := kit.NewInput("candlestick")
		f := w.FollowAgent(t, orders, in)
		f.Finish(t)
		asked, seen := kit.InterruptsOf(t, f.Events), len(f.Events)
		if len(asked) != 1 || asked[0].Message != "Ship candlestick for 110 euros?" {
			t.Fatalf("interrupts = %+v, want one about 110 euros", asked)
		}
		w.restartWorker(t)
		status, answer := kit.Decide(t, w.Endpoint, in.ThreadID, asked[0].ID, c.decision)
		for status == http.StatusServiceUnavailable { // the effect is unknown right after a worker's death: a client sends it again
			status, answer = kit.Decide(t, w.Endpoint, in.ThreadID, asked[0].ID, c.decision)
		}
		if status != http.StatusOK {
			t.Fatalf("%s: got %d %v, want %d", c.decision, status, answer, http.StatusOK)
		}
		f.AttachPath = "/v1/threads/" + in.ThreadID + "/events"
		f.Until(t, kit.Event.Terminal)
		if got := strings.Join(called(t, f.Events[seen:]), " "); got != c.wantCalls {
			t.Errorf("%s: calls = %s, want %s", c.decision, got, c.wantCalls)
		}
	}
}
