package chaos

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// testbed has a pausable model, "perdure dev" and a cluster. Both start at their first use and are
// inspected when the test ends.
type testbed struct {
	*kit.PausableModel
	t       *testing.T // the test whose end stops the testbed
	dev     func() *kit.Perdure
	cluster func() *fleet
}

// setupTestbed returns a testbed that starts its processes on demand.
func setupTestbed(t *testing.T) *testbed {
	t.Helper()
	if err := kit.BuildObserved(); err != nil {
		t.Fatal(err)
	}
	tb := &testbed{PausableModel: kit.StartPausableModel(t), t: t}
	tb.dev = sync.OnceValue(tb.startDev)
	tb.cluster = sync.OnceValue(tb.startFleet)
	return tb
}

// startDev starts the single process.
func (tb *testbed) startDev() *kit.Perdure {
	p := kit.NewPerdure(filepath.Join(tb.t.TempDir(), "data"), kit.SharedModel)
	p.Program, p.Agents, p.Env = filepath.Join(kit.ObservedPrograms, "perdure"), filepath.Join("testdata", "chaos"), tb.Environ()
	p.Flags = []string{"--known", "observe", "--known", "charge"} // tools of the observed program
	p.InspectAtEnd(tb.t)
	p.Start(tb.t)
	return p
}

// fleet is a cluster with one worker, one API that serves all readers (front) and one spare API.
type fleet struct {
	*kit.Cluster
	front, spare *kit.API
	worker       *kit.Process
}

// startFleet starts the cluster.
func (tb *testbed) startFleet() *fleet {
	c := &kit.Cluster{Programs: kit.ObservedPrograms, Agents: filepath.Join("testdata", "chaos"), Env: tb.Environ()}
	c.InspectAtEnd(tb.t)
	c.StartServers(tb.t)
	return &fleet{Cluster: c, front: c.StartAPI(tb.t), spare: c.StartAPI(tb.t), worker: c.StartWorker(tb.t)}
}

// killAPI kills the API with the readers. The spare takes its place.
func (c *fleet) killAPI(t *testing.T) {
	t.Helper()
	c.front.Kill()
	c.front, c.spare = c.spare, nil
}

// killWorker kills the worker. Unless atOnce, it starts the next worker first.
func (c *fleet) killWorker(t *testing.T, atOnce bool) {
	t.Helper()
	dying := c.worker
	if !atOnce {
		c.worker = c.StartWorker(t)
	}
	dying.Kill()
}
