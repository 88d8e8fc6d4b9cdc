package chaos

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// fault is a row of the matrix: something that befalls a run.
type fault struct {
	name string
	// cannot says why it cannot happen in a phase; "" = it can.
	cannot func(phase) string
	// where runs begin and are read.
	where func(*testbed) *kit.Endpoint
	// prepare changes a run before it begins; may be nil.
	prepare func(*observedRun)
	// strike makes it happen to runs that stand in their phases. When it returns, the runs can go
	// on.
	strike func(*testing.T, *testbed, []*observedRun)
	// alone tells that it strikes whatever there is, so that brief phases take a try of their own.
	alone bool
	// again is how many calls of the struck turn it may cost.
	again int
	// check looks at what is peculiar; may be nil.
	check func(*observedRun) error
	// lasts tells that it takes long: only the whole matrix has it.
	lasts bool
}

const (
	notCalled  = "the model is not being called then"
	notArgs    = "there are no arguments then"
	notStarted = "nothing has been said then"
	headerSent = "a status comes before the first token or not at all"
)

func anywhere(phase) string { return "" }

func dev(th *testbed) *kit.Endpoint { return th.dev().Endpoint }

func front(th *testbed) *kit.Endpoint { return th.cluster().front.Endpoint }

// whileCalled limits a fault to phases in which the model is speaking, or about to.
func whileCalled(ph phase) string {
	if ph.brief() || ph.turn == kit.TurnTool || ph.turn == kit.Nowhere {
		return notCalled
	}
	return ""
}

func whileSpeaking(ph phase) string {
	if reason := whileCalled(ph); reason != "" {
		return reason
	}
	if ph.at == kit.Asked {
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

// struck notes that whoever ran the runs is gone.
func struck(actors []*observedRun) {
	for _, a := range actors {
		a.struck, a.killed = time.Now(), true
	}
}

// violent are faults that end processes: each has all runs to itself.
var violent = []fault{
	{
		name: "`perdure dev`: kill -9", cannot: anywhere, where: dev, alone: true, again: 1,
		strike: func(t *testing.T, th *testbed, actors []*observedRun) {
			th.dev().Kill()
			struck(actors)
			th.dev().Start(t)
		},
	},
	{
		name: "`perdure dev`: SIGTERM", cannot: anywhere, where: dev, alone: true, again: 1,
		strike: func(t *testing.T, th *testbed, actors []*observedRun) {
			struck(actors) // it may bring things to their end yet
			if err := th.dev().Stop(); err != nil {
				t.Error(err)
			}
			th.dev().Start(t)
		},
	},
	{
		name: "`worker`: kill -9", cannot: anywhere, where: front, alone: true, again: 1,
		strike: func(t *testing.T, th *testbed, actors []*observedRun) {
			c, atOnce := th.cluster(), actors[0].phase.brief()
			c.killWorker(t, atOnce)
			struck(actors)
			if atOnce {
				c.worker = c.StartWorker(t)
			}
		},
	},
	{
		name: "`api`: kill -9", cannot: anywhere, where: front, alone: true,
		strike: func(t *testing.T, th *testbed, actors []*observedRun) {
			c := th.cluster()
			c.killAPI(t)
			struck(actors)
			for _, a := range actors {
				a.reader.P = c.front.Endpoint
			}
			c.spare = c.StartAPI(t)
		},
	},
}

// calm are faults that befall one run.
var calm = []fault{
	{
		name: "the reader's connection is cut", cannot: anywhere, where: dev,
		strike: func(_ *testing.T, _ *testbed, actors []*observedRun) {
			for _, a := range actors {
				a.reader.Cut()
			}
		},
	},
	{
		name: "cancel", cannot: anywhere, where: dev,
		strike: func(t *testing.T, th *testbed, actors []*observedRun) {
			for _, a := range actors {
				a.cancel = true
				if got := th.dev().Cancel(t, a.reader.In); got != http.StatusAccepted {
					t.Errorf("%s: cancel: %d, want 202", a.phase.name, got)
				}
			}
		},
	},
	flawed("model: connection breaks", kit.BreaksOff, whileCalled, 1),
	flawed("model: HTTP 500, or an error in the stream", kit.ServerError, whileCalled, 1),
	checked(flawed("model: 429 with Retry-After", kit.RateLimited, only(phaseAsked, headerSent), 1), waited),
	flawed("model: garbage", kit.Garbage, whileCalled, 1),
	flawed("model: ends without a finish reason", kit.NoFinish, whileCalled, 1),
	checked(flawed("model: half a call's arguments, as if whole", kit.HalfCall, only(phaseArguments, notArgs), 0), noTool),
	flawed("model: invalid UTF-8", kit.InvalidUTF8, whileSpeaking, 0),
	checked(flawed("model: two calls under one id", kit.SameIDs, only(phaseArguments, notArgs), 0), twoTools),
	endless(flawed("model: falls silent and never ends", kit.NeverEnds, whileCalled, 0)),
}

// flawed returns a fault of the model, in an otherwise healthy process.
func flawed(name string, what kit.ModelFault, cannot func(phase) string, again int) fault {
	return fault{
		name: name, cannot: cannot, where: dev, again: again,
		prepare: func(a *observedRun) { a.play.Flaw = what },
		strike:  func(*testing.T, *testbed, []*observedRun) {}, // it happens when the play goes on
	}
}

func checked(f fault, check func(*observedRun) error) fault {
	f.check = check
	return f
}

// endless makes a fault one that only the run's limit of time ends.
func endless(f fault) fault {
	prepare := f.prepare
	f.lasts = true
	f.prepare = func(a *observedRun) {
		prepare(a)
		a.reader.Agent, a.unsaid = "/v1/agents/hurried/runs", "limit_duration"
	}
	return f
}

// waited checks that the model was left alone for as long as it asked for.
func waited(a *observedRun) error {
	calls := a.play.Performances(a.phase.turn)
	if got := calls[len(calls)-1].Began.Sub(calls[0].Began); got < kit.RetryAfter*time.Second {
		return fmt.Errorf("the model was called again after %s", got)
	}
	return nil
}

func noTool(a *observedRun) error {
	if n := len(a.play.Performances(kit.TurnTool)); n != 0 {
		return fmt.Errorf("the tool ran %d times on half its arguments", n)
	}
	return nil
}

func twoTools(a *observedRun) error {
	made := a.play.Performances(kit.TurnTool)
	if len(made) != 2 || made[0].Key == made[1].Key || made[0].Note == made[1].Note {
		return fmt.Errorf("the tool ran %d times, want once for each call: %+v", len(made), made)
	}
	return nil
}

// counted checks that nothing was called more often than the fault explains.
func (f fault) counted(a *observedRun) error {
	for _, turn := range []int{1, 2, kit.TurnTool} {
		calls, most := len(a.play.Performances(turn)), 1
		if a.phase.brief() || a.phase.turn == turn {
			most += f.again
		}
		if turn == kit.TurnTool && f.check != nil {
			continue // it counts by itself
		}
		if a.play.Tool == "charge" && turn == kit.TurnTool {
			most = 1
		}
		if calls > most {
			return fmt.Errorf("turn %d was called %d times, want at most %d", turn, calls, most)
		}
	}
	return nil
}

// hit reports whether a brief phase was hit: the log has what ends it, but not from before the
// fault.
func (a *observedRun) hit(records []kit.Record) bool {
	at := slices.IndexFunc(records, a.phase.next)
	return at >= 0 && records[at].At.After(a.struck)
}
