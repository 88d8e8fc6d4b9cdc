package e2e

import (
	"path/filepath"
	"sync"
	"testing"
)

// playhouse is where the matrix plays: a stage, "perdure dev", and a cluster, brought up when they
// are first needed and inspected when the test ends.
type playhouse struct {
	*stage
	t       *testing.T // whose end is the playhouse's
	dev     func() *perdure
	cluster func() *company
}

func openPlayhouse(t *testing.T) *playhouse {
	t.Helper()
	if err := buildObserved(); err != nil {
		t.Fatal(err)
	}
	th := &playhouse{stage: openStage(t), t: t}
	th.dev = sync.OnceValue(th.startDev)
	th.cluster = sync.OnceValue(th.startCompany)
	return th
}

func (th *playhouse) startDev() *perdure {
	p := newPerdure(filepath.Join(th.t.TempDir(), "data"), sharedModel)
	p.program, p.agents, p.env = filepath.Join(observedPrograms, "perdure"), filepath.Join("testdata", "performers"), th.environ()
	p.flags = []string{"--known", "observe", "--known", "charge"} // tools that the observed program adds
	p.keep(th.t)
	p.start(th.t)
	return p
}

// company is a cluster with one worker that has all runs, one api that has all readers, and one to
// which they can go.
type company struct {
	*cluster
	front, spare *gateway
	worker       *process
}

func (th *playhouse) startCompany() *company {
	c := &cluster{programs: observedPrograms, agents: filepath.Join("testdata", "performers"), settings: th.environ()}
	c.prepare(th.t)
	c.open(th.t)
	return &company{cluster: c, front: c.startAPI(th.t), spare: c.startAPI(th.t), worker: c.startWorker(th.t)}
}

// killAPI kills the api that has the readers; what was spare takes its place.
func (c *company) killAPI(t *testing.T) {
	t.Helper()
	c.front.kill()
	c.front, c.spare = c.spare, nil
}

// killWorker kills the worker. Before, unless it must be done at once, another one is brought up.
func (c *company) killWorker(t *testing.T, atOnce bool) {
	t.Helper()
	dying := c.worker
	if !atOnce {
		c.worker = c.startWorker(t)
	}
	dying.kill()
}
