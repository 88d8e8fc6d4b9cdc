package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// programs is the folder of the programs that a cluster is made of.
var programs string

// buildCluster builds them: without the race detector, which would take minutes for the servers.
var buildCluster = sync.OnceValue(func() error {
	return execute("..", "go", "build", "-o", programs+string(filepath.Separator), "./cmd/api", "./cmd/worker", "./bench/servers")
})

// cluster is Perdure as it is in production: any number of api and worker processes on servers of
// their own. Only the goroutine of its test may use it.
type cluster struct {
	data     string
	programs string
	agents   string
	env      []string  // beside the usual
	where    addresses // of the servers
	threads  *threads
	// processes are all that were ever started, the servers first; outputs are what they wrote.
	processes []*process
	outputs   []*output
}

// gateway is one api of a cluster.
type gateway struct {
	*endpoint
	*process
}

// startCluster starts the servers. What the cluster leaves behind is inspected when the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	if err := buildCluster(); err != nil {
		t.Fatal(err)
	}
	c := &cluster{programs: programs, agents: filepath.Join("testdata", "agents")}
	c.open(t)
	return c
}

// open starts the servers of a cluster that is otherwise complete.
func (c *cluster) open(t *testing.T) {
	t.Helper()
	c.data, c.threads = filepath.Join(t.TempDir(), "data"), newThreads()
	t.Cleanup(func() {
		if err := c.conclude(context.WithoutCancel(t.Context()), !t.Failed()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i, o := range c.outputs {
				t.Logf("output of process %d:\n%s", i, o.String())
			}
		}
	})
	c.launch(t, "servers", func(line []byte) bool { return json.Unmarshal(line, &c.where) == nil && c.where.Temporal != "" }, c.data)
}

// launch starts a process on the servers and waits until it is ready.
func (c *cluster) launch(t *testing.T, name string, ready func(line []byte) bool, args ...string) *process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.programs, name), args...)
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, sharedModel.environ()...)
	cmd.Env = append(cmd.Env, "NATS_URL="+c.where.NATS, "TEMPORAL_ADDRESS="+c.where.Temporal,
		"TEMPORAL_NAMESPACE="+c.where.Namespace, "TEMPORAL_CONFIG_FILE=none")
	if name == "api" {
		cmd.Env = append(cmd.Env, "PERDURE_ADDR=127.0.0.1:0", "PERDURE_AGENTS="+c.agents)
	}
	cmd.Env = append(cmd.Env, c.env...)
	if _, err := cmd.StdinPipe(); err != nil { // held open: the servers end with it
		t.Fatal(err)
	}
	out := &output{}
	c.outputs = append(c.outputs, out)
	p, err := launch(t.Context(), cmd, out, ready)
	if err != nil {
		t.Fatal(err)
	}
	c.processes = append(c.processes, p)
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
	p := c.launch(t, "api", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "serving" })
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
	return c.launch(t, "worker", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "working" })
}

// conclude stops whatever runs and looks for content. If all went well it inspects the workflows
// before: at least one worker must live for them to end.
func (c *cluster) conclude(ctx context.Context, well bool) error {
	if len(c.processes) == 0 {
		return nil
	}
	var err error
	if well {
		e := newEndpoint(c.threads)
		e.where = c.where
		close(e.up)
		err = e.inspect(ctx)
	}
	var g errgroup.Group
	for _, p := range c.processes[1:] {
		if p.running() {
			g.Go(p.stop)
		}
	}
	err = errors.Join(err, g.Wait(), c.processes[0].stop(), searchDatabase(c.data))
	for _, o := range c.outputs {
		err = errors.Join(err, o.search())
	}
	return err
}
