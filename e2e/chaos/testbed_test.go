package chaos

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// testbed is where the matrix plays: a stage, "perdure dev", and a cluster, brought up when they
// are first needed and inspected when the test ends.
type testbed struct {
	*kit.PausableModel
	t       *testing.T // whose end is the playhouse's
	dev     func() *kit.Perdure
	cluster func() *fleet
}

func setupTestbed(t *testing.T) *testbed {
	t.Helper()
	if err := kit.BuildObserved(); err != nil {
		t.Fatal(err)
	}
	th := &testbed{PausableModel: kit.StartPausableModel(t), t: t}
	th.dev = sync.OnceValue(th.startDev)
	th.cluster = sync.OnceValue(th.startCompany)
	return th
}

func (th *testbed) startDev() *kit.Perdure {
	p := kit.NewPerdure(filepath.Join(th.t.TempDir(), "data"), kit.SharedModel)
	p.Program, p.Agents, p.Env = filepath.Join(kit.ObservedPrograms, "perdure"), filepath.Join("testdata", "performers"), th.Environ()
	p.Flags = []string{"--known", "observe", "--known", "charge"} // tools that the observed program adds
	p.Keep(th.t)
	p.Start(th.t)
	return p
}

// fleet is a cluster with one worker that has all runs, one api that has all readers, and one to
// which they can go.
type fleet struct {
	*kit.Cluster
	front, spare *kit.Gateway
	worker       *kit.Process
}

func (th *testbed) startCompany() *fleet {
	c := &kit.Cluster{Programs: kit.ObservedPrograms, Agents: filepath.Join("testdata", "performers"), Settings: th.Environ()}
	c.Prepare(th.t)
	c.Open(th.t)
	return &fleet{Cluster: c, front: c.StartAPI(th.t), spare: c.StartAPI(th.t), worker: c.StartWorker(th.t)}
}

// killAPI kills the api that has the readers; what was spare takes its place.
func (c *fleet) killAPI(t *testing.T) {
	t.Helper()
	c.front.Kill()
	c.front, c.spare = c.spare, nil
}

// killWorker kills the worker. Before, unless it must be done at once, another one is brought up.
func (c *fleet) killWorker(t *testing.T, atOnce bool) {
	t.Helper()
	dying := c.worker
	if !atOnce {
		c.worker = c.StartWorker(t)
	}
	dying.Kill()
}
