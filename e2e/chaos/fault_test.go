package chaos

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// fault is a row of the matrix: something that goes wrong during a run.
type fault struct {
	name string
	// excluded returns why the fault cannot happen in a phase; "" = it can.
	excluded func(phase) string
	// endpoint returns the API on which the runs start and are read.
	endpoint func(*testbed) *kit.Endpoint
	// prepare changes a run before it starts; nil = nothing to change.
	prepare func(*observedRun)
	// inject makes the fault happen to runs that are in their phases. The runs may continue when it
	// returns.
	inject func(*testing.T, *testbed, []*observedRun)
	// isolated is true if the fault affects all runs of a process. Each brief phase then has its
	// own attempt.
	isolated bool
	// extraCalls is the number of further calls of the interrupted turn that the fault may cause.
	extraCalls int
	// check makes checks that only this fault needs; nil = none.
	check func(*observedRun) error
	// isSlow is true if the fault takes long. It runs only with -chaos.
	isSlow bool
}

const (
	notCalled  = "no model call is active"
	notArgs    = "the model sends no arguments"
	notStarted = "the model has sent no text"
	headerSent = "a status can only precede the first token"
)

// inAnyPhase does not limit a fault.
func inAnyPhase(phase) string { return "" }

// devEndpoint returns the endpoint of the single process.
func devEndpoint(tb *testbed) *kit.Endpoint { return tb.dev().Endpoint }

// clusterEndpoint returns the endpoint of the cluster.
func clusterEndpoint(tb *testbed) *kit.Endpoint { return tb.cluster().front.Endpoint }

// whileCalled limits a fault to phases in which a model call is active.
func whileCalled(ph phase) string {
	if ph.brief() || ph.turn == kit.TurnTool || ph.turn == kit.NoTurn {
		return notCalled
	}
	return ""
}

// whileSpeaking limits a fault to phases in which the model has streamed something.
func whileSpeaking(ph phase) string {
	if reason := whileCalled(ph); reason != "" {
		return reason
	}
	if ph.at == kit.BeforeFirstChunk {
		return notStarted
	}
	return ""
}

// only limits a fault to one phase.
func only(name, reason string) func(phase) string {
	return func(ph phase) string {
		if called := whileCalled(ph); called != "" {
			return called
		}
		if ph.name != name {
			return reason
		}
		return ""
	}
}

// markKilled records that the process of the runs was killed.
func markKilled(runs []*observedRun) {
	for _, r := range runs {
		r.faultedAt, r.killed = time.Now(), true
	}
}

// processFaults end a process. Each runs alone.
var processFaults = []fault{
	{
		name: "`perdure dev`: kill -9", excluded: inAnyPhase, endpoint: devEndpoint, isolated: true, extraCalls: 1,
		inject: func(t *testing.T, tb *testbed, runs []*observedRun) {
			tb.dev().Kill()
			markKilled(runs)
			tb.dev().Start(t)
		},
	},
	{
		name: "`perdure dev`: SIGTERM", excluded: inAnyPhase, endpoint: devEndpoint, isolated: true, extraCalls: 1,
		inject: func(t *testing.T, tb *testbed, runs []*observedRun) {
			markKilled(runs) // before the stop: runs may end during it
			if err := tb.dev().Stop(); err != nil {
				t.Error(err)
			}
			tb.dev().Start(t)
		},
	},
	{
		name: "`worker`: kill -9", excluded: inAnyPhase, endpoint: clusterEndpoint, isolated: true, extraCalls: 1,
		inject: func(t *testing.T, tb *testbed, runs []*observedRun) {
			c, atOnce := tb.cluster(), runs[0].phase.brief()
			c.killWorker(t, atOnce)
			markKilled(runs)
			if atOnce {
				c.worker = c.StartWorker(t)
			}
		},
	},
	{
		name: "`api`: kill -9", excluded: inAnyPhase, endpoint: clusterEndpoint, isolated: true,
		inject: func(t *testing.T, tb *testbed, runs []*observedRun) {
			c := tb.cluster()
			c.killAPI(t)
			markKilled(runs)
			for _, r := range runs {
				r.reader.Endpoint = c.front.Endpoint
			}
			c.spare = c.StartAPI(t)
		},
	},
}

// runFaults affect one run.
var runFaults = []fault{
	{
		name: "the client disconnects", excluded: inAnyPhase, endpoint: devEndpoint,
		inject: func(_ *testing.T, _ *testbed, runs []*observedRun) {
			for _, r := range runs {
				r.reader.Cut()
			}
		},
	},
	{
		name: "cancel", excluded: inAnyPhase, endpoint: devEndpoint,
		inject: func(t *testing.T, tb *testbed, runs []*observedRun) {
			for _, r := range runs {
				r.cancelled = true
				if got := tb.dev().Cancel(t, r.reader.In); got != http.StatusAccepted {
					t.Errorf("%s: cancel: %d, want 202", r.phase.name, got)
				}
			}
		},
	},
	modelFault("model: connection breaks", kit.ConnectionBreak, whileCalled, 1),
	modelFault("model: HTTP 500, or an error in the stream", kit.ServerError, whileCalled, 1),
	withCheck(modelFault("model: 429 with Retry-After", kit.RateLimited, only(phaseAsked, headerSent), 1), checkRetryAfter),
	modelFault("model: invalid response", kit.Garbage, whileCalled, 1),
	modelFault("model: ends without a finish reason", kit.NoFinish, whileCalled, 1),
	withCheck(modelFault("model: truncated arguments, reported as complete", kit.HalfCall, only(phaseArguments, notArgs), 0), checkNoTool),
	modelFault("model: invalid UTF-8", kit.InvalidUTF8, whileSpeaking, 0),
	withCheck(modelFault("model: two calls with one ID", kit.DuplicateCallIDs, only(phaseArguments, notArgs), 0), checkTwoTools),
	withTimeLimit(modelFault("model: sends no more data, and keeps the connection open", kit.NoEnd, whileCalled, 0)),
}

// modelFault returns a fault of the model. No process fails.
func modelFault(name string, what kit.ModelFault, excluded func(phase) string, extraCalls int) fault {
	return fault{
		name: name, excluded: excluded, endpoint: devEndpoint, extraCalls: extraCalls,
		prepare: func(r *observedRun) { r.script.Fault = what },
		inject:  func(*testing.T, *testbed, []*observedRun) {}, // the script applies it when it continues
	}
}

// withCheck adds a check to a fault.
func withCheck(f fault, check func(*observedRun) error) fault {
	f.check = check
	return f
}

// withTimeLimit makes a run end by its time limit.
func withTimeLimit(f fault) fault {
	prepare := f.prepare
	f.isSlow = true
	f.prepare = func(r *observedRun) {
		prepare(r)
		r.reader.Agent, r.wantError = "/v1/agents/hurried/runs", "limit_duration"
	}
	return f
}

// checkRetryAfter checks that the model was not called before the delay that it asked for.
func checkRetryAfter(r *observedRun) error {
	calls := r.script.Invocations(r.phase.turn)
	if got := calls[len(calls)-1].Began.Sub(calls[0].Began); got < kit.RetryAfter*time.Second {
		return fmt.Errorf("the model was called again after %s", got)
	}
	return nil
}

// checkNoTool checks that the tool did not run on truncated arguments.
func checkNoTool(r *observedRun) error {
	if n := len(r.script.Invocations(kit.TurnTool)); n != 0 {
		return fmt.Errorf("the tool ran %d times on half its arguments", n)
	}
	return nil
}

// checkTwoTools checks that the tool ran once for each of two calls.
func checkTwoTools(r *observedRun) error {
	made := r.script.Invocations(kit.TurnTool)
	if len(made) != 2 || made[0].Key == made[1].Key || made[0].Note == made[1].Note {
		return fmt.Errorf("the tool ran %d times, want once for each call: %+v", len(made), made)
	}
	return nil
}

// checkCalls checks that no turn was called more often than the fault allows.
func (f fault) checkCalls(r *observedRun) error {
	for _, turn := range []int{1, 2, kit.TurnTool} {
		calls, most := len(r.script.Invocations(turn)), 1
		if r.phase.brief() || r.phase.turn == turn {
			most += f.extraCalls
		}
		if turn == kit.TurnTool && f.check != nil {
			continue // f.check counts the calls
		}
		if r.script.Tool == "charge" && turn == kit.TurnTool {
			most = 1
		}
		if calls > most {
			return fmt.Errorf("turn %d was called %d times, want at most %d", turn, calls, most)
		}
	}
	return nil
}

// wasInPhase reports whether the fault hit a brief phase: the log has the record that ends the
// phase, written after the fault.
func (r *observedRun) wasInPhase(records []kit.Record) bool {
	at := slices.IndexFunc(records, r.phase.next)
	return at >= 0 && records[at].At.After(r.faultedAt)
}
