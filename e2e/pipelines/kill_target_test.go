package pipelines

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// killTarget is a journal server and an API whose process or worker tests can kill.
type killTarget struct {
	*journalServer
	p *kit.Endpoint
	// kill kills the process or worker and starts the next one.
	kill func(t *testing.T)
	// undisturbed has the outcome of each agent without kills, and events the number of its events.
	undisturbed map[string]runResult
	events      map[string]int
}

// newKillTarget returns a kill target.
func newKillTarget(w *journalServer, p *kit.Endpoint, kill func(t *testing.T)) *killTarget {
	return &killTarget{journalServer: w, p: p, kill: kill, undisturbed: map[string]runResult{}, events: map[string]int{}}
}

// setupDev returns "perdure dev", which is killed with its servers.
func setupDev(t *testing.T) *killTarget {
	t.Helper()
	return setupDevWith(t, nil)
}

// setupDevWith is like setupDev, with environment variables and a function that the journal server
// calls before it answers.
func setupDevWith(t *testing.T, before func(context.Context, *request) bool, settings ...string) *killTarget {
	t.Helper()
	w := startJournalServer(t)
	w.before = before
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = w.agents(t)
	p.Env = append(w.environ(p.Agents), settings...)
	p.InspectAtEnd(t)
	p.Start(t)
	return newKillTarget(w, p.Endpoint, func(t *testing.T) {
		t.Helper()
		p.Kill()
		p.Start(t)
	})
}

// setupWorker returns a cluster with one worker. Only the worker is killed, which readers do not
// notice.
func setupWorker(t *testing.T) *killTarget {
	t.Helper()
	w, c := startJournalServer(t), kit.NewCluster(t)
	c.Agents = w.agents(t)
	c.Env = w.environ(c.Agents)
	c.StartServers(t)
	api, worker := c.StartAPI(t), c.StartWorker(t)
	return newKillTarget(w, api.Endpoint, func(t *testing.T) {
		t.Helper()
		worker.Kill()
		worker = c.StartWorker(t)
	})
}

// TestPipelineKilledAtEachEvent: a pipeline is killed when its viewer has read a number of its
// events. Its outcome and its steps are those of an undisturbed run, and each tool call is made
// once. With -chaos each event has a kill. Otherwise CHAOS_SEED chooses one event in each part of
// the pipeline.
func TestPipelineKilledAtEachEvent(t *testing.T) {
	t.Parallel()
	seed := kit.ChaosSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, place := range []struct {
		name  string
		open  func(*testing.T) *killTarget
		parts map[string]int
	}{
		{"perdure dev", setupDev, map[string]int{"maker": 5, "undoer": 2}},
		{"worker", setupWorker, map[string]int{"maker": 3, "undoer": 1}},
	} {
		t.Run(place.name, func(t *testing.T) {
			s := place.open(t)
			for _, agent := range []string{"maker", "undoer"} {
				s.runUndisturbed(t, agent)
				for _, n := range moments(random, s.events[agent], place.parts[agent]) {
					if s.runKilledAt(t, agent, n); t.Failed() {
						return
					}
				}
			}
		})
	}
}

// moments returns one random event in each part of the events, or all events with -chaos.
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

// runUndisturbed runs an agent without kills and keeps its outcome.
func (s *killTarget) runUndisturbed(t *testing.T, agent string) {
	t.Helper()
	e := s.start(t, s.p, agent)
	e.follow(t, nil)
	e.checkOnce(t, 0)
	s.undisturbed[agent], s.events[agent] = e.result(t), len(e.reader.Events)
}

// cutByKill is the number of calls that a kill may interrupt: those of two branches, or the advance
// of their step.
const cutByKill = 2

// runKilledAt runs an agent with a kill after its n-th event.
func (s *killTarget) runKilledAt(t *testing.T, agent string, n int) {
	t.Helper()
	e := s.start(t, s.p, agent)
	killed, began := false, time.Now()
	e.follow(t, func(seen int) {
		if seen == n {
			s.kill(t)
			killed = true
		}
	})
	if !killed {
		t.Logf("%s had ended before event %d", agent, n)
	}
	t.Logf("%s killed at event %d took %s", agent, n, time.Since(began).Round(time.Millisecond))
	e.checkOnce(t, cutByKill)
	want := s.undisturbed[agent]
	want.wantSame(t, agent+" killed at event "+strconv.Itoa(n), e.result(t).settled(want))
	e.checkFollower(t)
}
