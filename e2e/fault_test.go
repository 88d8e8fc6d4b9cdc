package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// fault is a row of the matrix: something that befalls a run.
type fault struct {
	name string
	// cannot says why it cannot happen in a phase; "" = it can.
	cannot func(phase) string
	// where runs begin and are read.
	where func(*playhouse) *endpoint
	// prepare changes a run before it begins; may be nil.
	prepare func(*actor)
	// strike makes it happen to runs that stand in their phases. When it returns, the runs can go
	// on.
	strike func(*testing.T, *playhouse, []*actor)
	// alone tells that it strikes whatever there is, so that brief phases take a try of their own.
	alone bool
	// again is how many calls of the struck turn it may cost.
	again int
	// check looks at what is peculiar; may be nil.
	check func(*actor) error
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

func dev(th *playhouse) *endpoint { return th.dev().endpoint }

func front(th *playhouse) *endpoint { return th.cluster().front.endpoint }

// whileCalled limits a fault to phases in which the model is speaking, or about to.
func whileCalled(ph phase) string {
	if ph.brief() || ph.turn == turnTool || ph.turn == nowhere {
		return notCalled
	}
	return ""
}

func whileSpeaking(ph phase) string {
	if reason := whileCalled(ph); reason != "" {
		return reason
	}
	if ph.at == asked {
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
func struck(actors []*actor) {
	for _, a := range actors {
		a.struck, a.killed = time.Now(), true
	}
}

// violent are faults that end processes: each has all runs to itself.
var violent = []fault{
	{
		name: "`perdure dev`: kill -9", cannot: anywhere, where: dev, alone: true, again: 1,
		strike: func(t *testing.T, th *playhouse, actors []*actor) {
			th.dev().kill()
			struck(actors)
			th.dev().start(t)
		},
	},
	{
		name: "`perdure dev`: SIGTERM", cannot: anywhere, where: dev, alone: true, again: 1,
		strike: func(t *testing.T, th *playhouse, actors []*actor) {
			struck(actors) // it may bring things to their end yet
			if err := th.dev().stop(); err != nil {
				t.Error(err)
			}
			th.dev().start(t)
		},
	},
	{
		name: "`worker`: kill -9", cannot: anywhere, where: front, alone: true, again: 1,
		strike: func(t *testing.T, th *playhouse, actors []*actor) {
			c, atOnce := th.cluster(), actors[0].phase.brief()
			c.killWorker(t, atOnce)
			struck(actors)
			if atOnce {
				c.worker = c.startWorker(t)
			}
		},
	},
	{
		name: "`api`: kill -9", cannot: anywhere, where: front, alone: true,
		strike: func(t *testing.T, th *playhouse, actors []*actor) {
			c := th.cluster()
			c.killAPI(t)
			struck(actors)
			for _, a := range actors {
				a.reader.p = c.front.endpoint
			}
			c.spare = c.startAPI(t)
		},
	},
}

// calm are faults that befall one run.
var calm = []fault{
	{
		name: "the reader's connection is cut", cannot: anywhere, where: dev,
		strike: func(_ *testing.T, _ *playhouse, actors []*actor) {
			for _, a := range actors {
				a.reader.cut()
			}
		},
	},
	{
		name: "cancel", cannot: anywhere, where: dev,
		strike: func(t *testing.T, th *playhouse, actors []*actor) {
			for _, a := range actors {
				a.cancel = true
				if got := th.dev().cancel(t, a.reader.in); got != http.StatusAccepted {
					t.Errorf("%s: cancel: %d, want 202", a.phase.name, got)
				}
			}
		},
	},
	flawed("model: connection breaks", breaksOff, whileCalled, 1),
	flawed("model: HTTP 500, or an error in the stream", serverError, whileCalled, 1),
	checked(flawed("model: 429 with Retry-After", rateLimited, only(phaseAsked, headerSent), 1), waited),
	flawed("model: garbage", garbage, whileCalled, 1),
	flawed("model: ends without a finish reason", noFinish, whileCalled, 1),
	checked(flawed("model: half a call's arguments, as if whole", halfCall, only(phaseArguments, notArgs), 0), noTool),
	flawed("model: invalid UTF-8", invalidUTF8, whileSpeaking, 0),
	checked(flawed("model: two calls under one id", sameIDs, only(phaseArguments, notArgs), 0), twoTools),
	endless(flawed("model: falls silent and never ends", neverEnds, whileCalled, 0)),
}

// flawed returns a fault of the model, in an otherwise healthy process.
func flawed(name string, what flaw, cannot func(phase) string, again int) fault {
	return fault{
		name: name, cannot: cannot, where: dev, again: again,
		prepare: func(a *actor) { a.play.flaw = what },
		strike:  func(*testing.T, *playhouse, []*actor) {}, // it happens when the play goes on
	}
}

func checked(f fault, check func(*actor) error) fault {
	f.check = check
	return f
}

// endless makes a fault one that only the run's limit of time ends.
func endless(f fault) fault {
	prepare := f.prepare
	f.lasts = true
	f.prepare = func(a *actor) {
		prepare(a)
		a.reader.agent, a.unsaid = "/v1/agents/hurried/runs", "limit_duration"
	}
	return f
}

// waited checks that the model was left alone for as long as it asked for.
func waited(a *actor) error {
	calls := a.play.performances(a.phase.turn)
	if got := calls[len(calls)-1].began.Sub(calls[0].began); got < retryAfter*time.Second {
		return fmt.Errorf("the model was called again after %s", got)
	}
	return nil
}

func noTool(a *actor) error {
	if n := len(a.play.performances(turnTool)); n != 0 {
		return fmt.Errorf("the tool ran %d times on half its arguments", n)
	}
	return nil
}

func twoTools(a *actor) error {
	made := a.play.performances(turnTool)
	if len(made) != 2 || made[0].key == made[1].key || made[0].note == made[1].note {
		return fmt.Errorf("the tool ran %d times, want once for each call: %+v", len(made), made)
	}
	return nil
}

// counted checks that nothing was called more often than the fault explains.
func (f fault) counted(a *actor) error {
	for _, turn := range []int{1, 2, turnTool} {
		calls, most := len(a.play.performances(turn)), 1
		if a.phase.brief() || a.phase.turn == turn {
			most += f.again
		}
		if turn == turnTool && f.check != nil {
			continue // it counts by itself
		}
		if a.play.tool == "charge" && turn == turnTool {
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
func (a *actor) hit(records []record) bool {
	at := slices.IndexFunc(records, a.phase.next)
	return at >= 0 && records[at].at.After(a.struck)
}
