package pipelines

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// site is where errands are done, by somebody who can be killed.
type site struct {
	*journalServer
	p *kit.Endpoint
	// kill kills who is at work, and has somebody go on.
	kill func(t *testing.T)
	// undisturbed is what an agent's errands come to, and events how many somebody sees of one.
	undisturbed map[string]runResult
	events      map[string]int
}

func newSite(w *journalServer, p *kit.Endpoint, kill func(t *testing.T)) *site {
	return &site{journalServer: w, p: p, kill: kill, undisturbed: map[string]runResult{}, events: map[string]int{}}
}

// devSite returns one process, which is killed with the servers in it.
func devSite(t *testing.T) *site {
	t.Helper()
	return openSite(t, nil)
}

// openSite returns a devSite with settings of its own, whose workshop does something before it
// answers.
func openSite(t *testing.T, before func(context.Context, *request) bool, settings ...string) *site {
	t.Helper()
	w := startJournalServer(t)
	w.before = before
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = w.agents(t)
	p.Env = append(w.environ(p.Agents), settings...)
	p.Keep(t)
	p.Start(t)
	return newSite(w, p.Endpoint, func(t *testing.T) {
		t.Helper()
		p.Kill()
		p.Start(t)
	})
}

// workerSite returns a cluster with one worker, which is killed by itself: those who watch notice
// nothing.
func workerSite(t *testing.T) *site {
	t.Helper()
	w, c := startJournalServer(t), kit.NewCluster(t)
	c.Agents = w.agents(t)
	c.Settings = w.environ(c.Agents)
	c.Open(t)
	api, worker := c.StartAPI(t), c.StartWorker(t)
	return newSite(w, api.Endpoint, func(t *testing.T) {
		t.Helper()
		worker.Kill()
		worker = c.StartWorker(t)
	})
}

// A pipeline is killed when its viewer has seen so many of its events, and goes on: it comes to the
// same as one that nobody disturbs, has told the same steps, and has had each thing done once. With
// -chaos that is so for each event; else for some, chosen by CHAOS_SEED, one in each part of the
// pipeline.
func TestPipelineKilledAtEachEvent(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHAOS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, place := range []struct {
		name  string
		open  func(*testing.T) *site
		parts map[string]int
	}{
		{"perdure dev", devSite, map[string]int{"maker": 5, "undoer": 2}},
		{"worker", workerSite, map[string]int{"maker": 3, "undoer": 1}},
	} {
		t.Run(place.name, func(t *testing.T) {
			s := place.open(t)
			for _, agent := range []string{"maker", "undoer"} {
				s.calm(t, agent)
				for _, n := range moments(random, s.events[agent], place.parts[agent]) {
					if s.killedAt(t, agent, n); t.Failed() {
						return
					}
				}
			}
		})
	}
}

// moments are places among so many events: one in each part, or with -chaos all.
func moments(random *rand.Rand, events, parts int) []int {
	if *kit.Chaos {
		parts = events
	}
	var list []int
	for i := range parts {
		from, to := i*events/parts, (i+1)*events/parts
		list = append(list, 1+from+random.IntN(to-from))
	}
	return list
}

// calm finds out what an agent's errands come to.
func (s *site) calm(t *testing.T, agent string) {
	t.Helper()
	e := s.errand(t, s.p, agent)
	e.watch(t, nil)
	e.once(t, 0)
	s.undisturbed[agent], s.events[agent] = e.product(t), len(e.reader.Events)
}

// Each kill may cut off what two branches do at the time, and the advance of the step that they
// stand in.
const cutByKill = 2

func (s *site) killedAt(t *testing.T, agent string, n int) {
	t.Helper()
	e := s.errand(t, s.p, agent)
	killed, began := false, time.Now()
	e.watch(t, func(seen int) {
		if seen == n {
			s.kill(t)
			killed = true
		}
	})
	if !killed {
		t.Logf("%s had ended before event %d", agent, n)
	}
	t.Logf("%s killed at event %d took %s", agent, n, time.Since(began).Round(time.Millisecond))
	e.once(t, cutByKill)
	want := s.undisturbed[agent]
	want.same(t, agent+" killed at event "+strconv.Itoa(n), e.product(t).settled(want))
	e.shows(t)
}
