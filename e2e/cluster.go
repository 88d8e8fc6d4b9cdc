package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// programs is the folder of the programs that a cluster is made of.
var programs string

// buildCluster builds them: without the race detector, which would take minutes for the servers.
var buildCluster = sync.OnceValue(func() error {
	return execute("..", "go", "build", "-o", programs+string(filepath.Separator),
		"./cmd/api", "./cmd/worker", "./e2e/servers", "./e2e/servers/nats", "./e2e/servers/temporal")
})

// cluster is Perdure as it is in production: any number of api and worker processes on servers of
// their own. Only the goroutine of its test may use it.
type cluster struct {
	data     string
	programs string // folder
	agents   string
	where    addresses // of the servers
	threads  *threads
	// settings are what the nodes are started with, beside the usual.
	settings []string
	// servers is what they need, in the order of their start; nodes are all apis and workers that
	// were ever started, and outputs what any process wrote.
	servers []*server
	nodes   []*process
	outputs []*output
	// folder is one outside of data; "" = there is none.
	folder string
	// search looks for content in Temporal's database, which is at rest.
	search func() error
}

// gateway is one api of a cluster.
type gateway struct {
	*endpoint
	*process
}

// newCluster returns a cluster without servers. What it leaves behind is inspected when the test
// ends.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if err := buildCluster(); err != nil {
		t.Fatal(err)
	}
	c := &cluster{programs: programs, agents: filepath.Join("testdata", "agents")}
	c.prepare(t)
	return c
}

// startCluster starts the servers, both in one process.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.open(t)
	return c
}

func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	c.data, c.threads = filepath.Join(t.TempDir(), "data"), newThreads()
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(c.folder) }()
		if err := c.conclude(context.WithoutCancel(t.Context()), !t.Failed()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i, o := range c.outputs {
				t.Logf("output of process %d:\n%s", i, o.String())
			}
		}
	})
}

// open starts the servers of a cluster that is prepared.
func (c *cluster) open(t *testing.T, args ...string) {
	t.Helper()
	c.serve(t, "servers", append(args, c.data)...)
	c.search = func() error { return searchDatabase(c.data) }
}

// launch starts a process and waits until it is ready.
func (c *cluster) launch(t *testing.T, cmd *exec.Cmd, ready func(line []byte) bool) *process {
	t.Helper()
	if _, err := cmd.StdinPipe(); err != nil { // held open: servers end with it
		t.Fatal(err)
	}
	out := &output{}
	c.outputs = append(c.outputs, out)
	p, err := launch(t.Context(), cmd, out, ready)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launchNode starts an api or a worker.
func (c *cluster) launchNode(t *testing.T, name string, ready func(line []byte) bool) *process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.programs, name))
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, sharedModel.environ()...)
	cmd.Env = append(cmd.Env, "NATS_URL="+c.where.NATS, "TEMPORAL_ADDRESS="+c.where.Temporal,
		"TEMPORAL_NAMESPACE="+c.where.Namespace, "TEMPORAL_CONFIG_FILE=none")
	cmd.Env = append(cmd.Env, c.settings...)
	if name == "api" {
		cmd.Env = append(cmd.Env, "PERDURE_ADDR=127.0.0.1:0", "PERDURE_AGENTS="+c.agents)
	}
	p := c.launch(t, cmd, ready)
	c.nodes = append(c.nodes, p)
	return p
}

// logLine is a line of a log, as far as it is read.
type logLine struct {
	Message string `json:"msg"`
	Address string `json:"addr"`
}

func (c *cluster) startAPI(t *testing.T) *gateway {
	t.Helper()
	var line logLine
	p := c.launchNode(t, "api", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "serving" })
	where := c.where
	where.API = "http://" + line.Address
	g := &gateway{endpoint: newEndpoint(c.threads), process: p}
	if err := g.serves(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *cluster) startWorker(t *testing.T) *process {
	t.Helper()
	var line logLine
	return c.launchNode(t, "worker", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "working" })
}

// stopNodes stops all apis and workers that run.
func (c *cluster) stopNodes() error {
	var g errgroup.Group
	for _, p := range c.nodes {
		if p.running() {
			g.Go(p.stop)
		}
	}
	return g.Wait()
}

// conclude stops whatever runs and looks for content. If all went well it inspects the workflows
// before: at least one worker must live for them to end.
func (c *cluster) conclude(ctx context.Context, well bool) error {
	if len(c.servers) == 0 {
		return nil
	}
	var err error
	if well {
		e := newEndpoint(c.threads)
		e.where = c.where
		close(e.up)
		err = e.inspect(ctx)
	}
	err = errors.Join(err, c.stopNodes())
	for _, s := range slices.Backward(c.servers) {
		err = errors.Join(err, s.stop())
	}
	if well {
		err = errors.Join(err, c.search())
	}
	for _, o := range c.outputs {
		err = errors.Join(err, o.search())
	}
	return err
}
