package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// runsAtOnce is the number of runs in a round of the schedule.
const runsAtOnce = 40

// TestSchedule kills processes at random moments while models fail and readers lose their
// connections. Every run of every round is checked against the script's record. CHAOS_SEED chooses
// faults and moments, which are counted in events, not in time. CHAOS_TIME is the length of the
// schedule. Without -chaos it is one round.
func TestSchedule(t *testing.T) {
	seed := kit.ChaosSeed(t)
	length, err := time.ParseDuration(os.Getenv("CHAOS_TIME"))
	if err != nil && *kit.Chaos {
		length = 3 * time.Minute
	}
	t.Logf("CHAOS_TIME=%s", length)
	tb := setupTestbed(t)
	end, runs := time.Now().Add(length), 0
	for number := uint64(0); number == 0 || time.Now().Before(end) && !t.Failed(); number++ {
		r := &scheduleRound{t: t, testbed: tb, random: rand.New(rand.NewPCG(seed, number)), number: number}
		if (seed+number)%2 == 0 {
			r.run(r.killDev, tb.dev().Endpoint)
		} else {
			r.run(r.killInCluster, r.openEndpoint())
		}
		runs += runsAtOnce
		t.Logf("round %d: at event %d, %s", number, r.faultAt, r.fault)
	}
	t.Logf("%d runs", runs)
}

// scheduleRound is a number of concurrent runs and one fault. Only the test's goroutine may use it.
type scheduleRound struct {
	*testbed
	t       *testing.T
	random  *rand.Rand
	number  uint64
	openAPI *kit.Endpoint // in a cluster: always routes to an API that serves
	faultAt int64         // the number of events before the fault
	fault   string        // description
}

// run starts the runs and injects the fault when their readers together have read faultAt events.
func (r *scheduleRound) run(inject func(), at *kit.Endpoint) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 4*kit.WaitTimeout)
	defer cancel()
	r.faultAt = int64(1 + r.random.IntN(runsAtOnce*20))
	reached := make(chan struct{})
	var events atomic.Int64
	var reading errgroup.Group
	var started []*observedRun
	for range runsAtOnce {
		a, cut := r.newRun(ctx, at), 1+r.random.IntN(40)
		started = append(started, a)
		reading.Go(func() error {
			return a.readThrough(cut, func() {
				if events.Add(1) == r.faultAt {
					close(reached)
				}
			})
		})
	}
	readingDone := make(chan error, 1)
	go func() { readingDone <- reading.Wait() }()
	var err error
	ended := false
	select {
	case <-reached:
	case err = <-readingDone: // all runs ended before the fault
		ended = true
	}
	inject()
	if !ended {
		err = <-readingDone
	}
	if err != nil {
		r.t.Errorf("round %d: %v", r.number, err)
		return
	}
	r.check(ctx, started, at)
}

// check checks the runs that were started.
func (r *scheduleRound) check(ctx context.Context, started []*observedRun, at *kit.Endpoint) {
	var checks errgroup.Group
	checks.SetLimit(8)
	for i, a := range started {
		checks.Go(func() error {
			if err := a.check(ctx, at); err != nil {
				r.t.Errorf("round %d, run %d (%s, model fault at %d of turn %d): %v", r.number, i, a.script.Tool, a.script.At, a.script.Turn, err)
			}
			return nil
		})
	}
	_ = checks.Wait()
}

// newRun prepares a run with a random tool, a random interval and, in one of three runs, a fault of
// the model.
func (r *scheduleRound) newRun(ctx context.Context, at *kit.Endpoint) *observedRun {
	ph := phase{turn: kit.NoTurn, tool: []string{"observe", "charge"}[r.random.IntN(2)]}
	var what kit.ModelFault
	if r.random.IntN(3) == 0 {
		ph.turn = 1 + r.random.IntN(2)
		ph.at = r.random.IntN(kit.ChunksPerKind)
		faults := []kit.ModelFault{kit.ConnectionBreak, kit.ServerError, kit.Garbage, kit.NoFinish, kit.InvalidUTF8}
		what = faults[r.random.IntN(len(faults))]
	}
	a := newObservedRun(ctx, r.PausableModel, ph, at)
	a.killed = true // the fault may kill its process
	a.script.Fault, a.script.Interval = what, time.Duration(r.random.IntN(20))*time.Millisecond
	a.script.Release()
	return a
}

// readThrough reads a run to its end and reconnects once, after cut events. had is called for each
// event.
func (a *observedRun) readThrough(cut int, had func()) error {
	defer a.reader.Cut()
	for {
		e, err := a.reader.Next()
		if err != nil {
			return err
		}
		if had(); e.Terminal() {
			return nil
		}
		if len(a.reader.Events) == cut {
			a.reader.Cut()
		}
	}
}

// killDev kills or stops the single process, and starts it again.
func (r *scheduleRound) killDev() {
	p := r.dev()
	if r.random.IntN(4) > 0 {
		r.fault = "perdure dev: kill -9"
		p.Kill()
	} else {
		r.fault = "perdure dev: SIGTERM"
		if err := p.Stop(); err != nil {
			r.t.Error(err)
		}
	}
	p.Start(r.t)
}

// openEndpoint returns an endpoint that always routes to an API that serves.
func (r *scheduleRound) openEndpoint() *kit.Endpoint {
	c := r.cluster()
	r.openAPI = kit.NewEndpoint(c.Threads)
	r.routeTo(c.front)
	return r.openAPI
}

// routeTo directs new requests to an API process.
func (r *scheduleRound) routeTo(to *kit.API) {
	where, err := to.Addresses(r.t.Context())
	if err == nil {
		err = r.openAPI.Up(r.t.Context(), where)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// killInCluster kills the worker, the API with the readers, or both.
func (r *scheduleRound) killInCluster() {
	c, both := r.cluster(), r.random.IntN(3)
	if both > 0 {
		r.fault += "api: kill -9 "
		r.openAPI.Down()
		c.killAPI(r.t)
		r.routeTo(c.front)
		c.spare = c.StartAPI(r.t)
	}
	if both < 2 {
		r.fault += "worker: kill -9"
		last := r.random.IntN(2) == 0 // no other worker can take over
		c.killWorker(r.t, last)
		if last {
			c.worker = c.StartWorker(r.t)
		}
	}
}
