package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// runsAtOnce is how many runs a round of the schedule has.
const runsAtOnce = 40

// Processes are killed at random moments, while models fail and readers lose their connections:
// every run of every round is held against the journal. The seed, CHAOS_SEED, chooses faults and
// moments, which are counted in events and not in time. CHAOS_TIME is how long the schedule goes
// on; without -chaos it is one round.
func TestSchedule(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	length, err := time.ParseDuration(os.Getenv("CHAOS_TIME"))
	if err != nil && *kit.Chaos {
		length = 3 * time.Minute
	}
	t.Logf("CHAOS_SEED=%d CHAOS_TIME=%s", seed, length)
	th := setupTestbed(t)
	end, runs := time.Now().Add(length), 0
	for number := uint64(0); number == 0 || time.Now().Before(end) && !t.Failed(); number++ {
		r := &round{t: t, testbed: th, random: rand.New(rand.NewPCG(seed, number)), number: number}
		if (seed+number)%2 == 0 {
			r.play(r.killDev, th.dev().Endpoint)
		} else {
			r.play(r.killInCluster, r.door())
		}
		runs += runsAtOnce
		t.Logf("round %d: at event %d, %s", number, r.moment, r.blow)
	}
	t.Logf("%d runs", runs)
}

// round is some runs at the same time, and one blow. Only the goroutine of its test may use it.
type round struct {
	*testbed
	t      *testing.T
	random *rand.Rand
	number uint64
	open   *kit.Endpoint // in a cluster: where readers find whichever api serves
	moment int64         // of the blow, in events
	blow   string        // what it was
}

// play has the runs begin and deals the blow when their readers have had so many events together.
func (r *round) play(blow func(), at *kit.Endpoint) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 4*kit.Patience)
	defer cancel()
	r.moment = int64(1 + r.random.IntN(runsAtOnce*20))
	reached := make(chan struct{})
	var events atomic.Int64
	var reading errgroup.Group
	var actors []*observedRun
	for range runsAtOnce {
		a, cut := r.enter(ctx, at), 1+r.random.IntN(40)
		actors = append(actors, a)
		reading.Go(func() error {
			return a.readThrough(cut, func() {
				if events.Add(1) == r.moment {
					close(reached)
				}
			})
		})
	}
	over := make(chan error, 1)
	go func() { over <- reading.Wait() }()
	var err error
	ended := false
	select {
	case <-reached:
	case err = <-over: // before the moment: the blow meets nobody
		ended = true
	}
	blow()
	if !ended {
		err = <-over
	}
	if err != nil {
		r.t.Errorf("round %d: %v", r.number, err)
		return
	}
	r.judge(ctx, actors, at)
}

func (r *round) judge(ctx context.Context, actors []*observedRun, at *kit.Endpoint) {
	var judges errgroup.Group
	judges.SetLimit(8)
	for i, a := range actors {
		judges.Go(func() error {
			if err := a.verdict(ctx, at); err != nil {
				r.t.Errorf("round %d, run %d (%s, flaw at %d of turn %d): %v", r.number, i, a.play.Tool, a.play.At, a.play.Turn, err)
			}
			return nil
		})
	}
	_ = judges.Wait()
}

// enter prepares a run: any tool, any pace, and in some a flaw anywhere.
func (r *round) enter(ctx context.Context, at *kit.Endpoint) *observedRun {
	ph := phase{turn: kit.Nowhere, tool: []string{"observe", "charge"}[r.random.IntN(2)]}
	var what kit.ModelFault
	if r.random.IntN(3) == 0 {
		ph.turn = 1 + r.random.IntN(2)
		ph.at = r.random.IntN(kit.Pieces)
		flaws := []kit.ModelFault{kit.BreaksOff, kit.ServerError, kit.Garbage, kit.NoFinish, kit.InvalidUTF8}
		what = flaws[r.random.IntN(len(flaws))]
	}
	a := enter(ctx, r.PausableModel, ph, at)
	a.killed = true // it may have been
	a.play.Flaw, a.play.Pace = what, time.Duration(r.random.IntN(20))*time.Millisecond
	a.play.GoOn()
	return a
}

// readThrough reads a run to its end. The connection is cut once, behind so many events.
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

func (r *round) killDev() {
	p := r.dev()
	if r.random.IntN(4) > 0 {
		r.blow = "perdure dev: kill -9"
		p.Kill()
	} else {
		r.blow = "perdure dev: SIGTERM"
		if err := p.Stop(); err != nil {
			r.t.Error(err)
		}
	}
	p.Start(r.t)
}

// door returns an address behind which there is always an api.
func (r *round) door() *kit.Endpoint {
	c := r.cluster()
	r.open = kit.NewEndpoint(c.Threads)
	r.lead(c.front)
	return r.open
}

func (r *round) lead(to *kit.Gateway) {
	where, err := to.Addresses(r.t.Context())
	if err == nil {
		err = r.open.Serves(r.t.Context(), where)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// killInCluster kills the worker, the api that serves, or both.
func (r *round) killInCluster() {
	c, both := r.cluster(), r.random.IntN(3)
	if both > 0 {
		r.blow += "api: kill -9 "
		r.open.Down()
		c.killAPI(r.t)
		r.lead(c.front)
		c.spare = c.StartAPI(r.t)
	}
	if both < 2 {
		r.blow += "worker: kill -9"
		last := r.random.IntN(2) == 0 // nobody is there to take over at once
		c.killWorker(r.t, last)
		if last {
			c.worker = c.StartWorker(r.t)
		}
	}
}
