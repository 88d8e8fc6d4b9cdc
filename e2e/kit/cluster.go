package kit

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

// Programs is the folder of the programs that a cluster is made of.
var Programs string

// buildCluster builds them: without the race detector, which would take minutes for the servers.
var buildCluster = sync.OnceValue(func() error {
	return build("./cmd/api", "./cmd/worker", "./e2e/servers", "./e2e/servers/nats", "./e2e/servers/temporal")
})

// Cluster is Perdure as it is in production: any number of api and worker processes on servers of
// their own. Only the goroutine of its test may use it.
type Cluster struct {
	Data     string
	Programs string // folder
	Agents   string
	Where    addresses // of the servers
	Threads  *threads
	// Settings are what the nodes are started with, beside the usual.
	Settings []string
	// Servers is what they need, in the order of their start; nodes are all apis and workers that
	// were ever started, and outputs what any process wrote.
	Servers []*Server
	Nodes   []*Process
	outputs []*Output
	// folder is one outside of data; "" = there is none.
	folder string
	// search looks for content in Temporal's database, which is at rest.
	search func() error
}

// Gateway is one api of a cluster.
type Gateway struct {
	*Endpoint
	*Process
}

// NewCluster returns a cluster without servers. What it leaves behind is inspected when the test
// ends.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	if err := buildCluster(); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Programs: Programs, Agents: filepath.Join("testdata", "agents")}
	c.Prepare(t)
	return c
}

// SetupCluster starts the servers, both in one process.
func SetupCluster(t *testing.T) *Cluster {
	t.Helper()
	c := NewCluster(t)
	c.Open(t)
	return c
}

func (c *Cluster) Prepare(t *testing.T) {
	t.Helper()
	c.Data, c.Threads = filepath.Join(t.TempDir(), "data"), newThreads()
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(c.folder) }()
		if err := c.Conclude(context.WithoutCancel(t.Context()), !t.Failed()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i, o := range c.outputs {
				t.Logf("output of process %d:\n%s", i, o.String())
			}
		}
	})
}

// Open starts the servers of a cluster that is prepared.
func (c *Cluster) Open(t *testing.T, args ...string) {
	t.Helper()
	c.serve(t, "servers", append(args, c.Data)...)
	c.search = func() error { return searchDatabase(c.Data) }
}

// Launch starts a process and waits until it is ready.
func (c *Cluster) Launch(t *testing.T, cmd *exec.Cmd, ready func(line []byte) bool) *Process {
	t.Helper()
	if _, err := cmd.StdinPipe(); err != nil { // held open: servers end with it
		t.Fatal(err)
	}
	out := &Output{}
	c.outputs = append(c.outputs, out)
	p, err := Launch(t.Context(), cmd, out, ready)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launchNode starts an api or a worker.
func (c *Cluster) launchNode(t *testing.T, name string, ready func(line []byte) bool) *Process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.Programs, name))
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, SharedModel.Environ()...)
	cmd.Env = append(cmd.Env, "NATS_URL="+c.Where.NATS, "TEMPORAL_ADDRESS="+c.Where.Temporal,
		"TEMPORAL_NAMESPACE="+c.Where.Namespace, "TEMPORAL_CONFIG_FILE=none")
	cmd.Env = append(cmd.Env, c.Settings...)
	if name == "api" {
		cmd.Env = append(cmd.Env, "PERDURE_ADDR=127.0.0.1:0", "PERDURE_AGENTS="+c.Agents)
	}
	p := c.Launch(t, cmd, ready)
	c.Nodes = append(c.Nodes, p)
	return p
}

// logLine is a line of a log, as far as it is read.
type logLine struct {
	Message string `json:"msg"`
	Address string `json:"addr"`
}

func (c *Cluster) StartAPI(t *testing.T) *Gateway {
	t.Helper()
	var line logLine
	p := c.launchNode(t, "api", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "serving" })
	where := c.Where
	where.API = "http://" + line.Address
	g := &Gateway{Endpoint: NewEndpoint(c.Threads), Process: p}
	if err := g.Serves(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *Cluster) StartWorker(t *testing.T) *Process {
	t.Helper()
	var line logLine
	return c.launchNode(t, "worker", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "working" })
}

// StopNodes stops all apis and workers that run.
func (c *Cluster) StopNodes() error {
	var g errgroup.Group
	for _, p := range c.Nodes {
		if p.running() {
			g.Go(p.Stop)
		}
	}
	return g.Wait()
}

// Conclude stops whatever runs and looks for content. If all went well it inspects the workflows
// before: at least one worker must live for them to end.
func (c *Cluster) Conclude(ctx context.Context, well bool) error {
	if len(c.Servers) == 0 {
		return nil
	}
	var err error
	if well {
		e := NewEndpoint(c.Threads)
		e.Where = c.Where
		close(e.up)
		err = e.inspect(ctx)
	}
	err = errors.Join(err, c.StopNodes())
	for _, s := range slices.Backward(c.Servers) {
		err = errors.Join(err, s.Stop())
	}
	if well {
		err = errors.Join(err, c.search())
	}
	for _, o := range c.outputs {
		err = errors.Join(err, o.search())
	}
	return err
}
