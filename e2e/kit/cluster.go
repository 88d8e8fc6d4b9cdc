package kit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Programs is the directory with the programs of a cluster.
var Programs string

// buildCluster builds the programs of a cluster. It does not use the race detector, with which the
// servers take minutes to build.
var buildCluster = sync.OnceValue(func() error {
	return build("./cmd/api", "./cmd/worker", "./cmd/perdure", "./e2e/servers", "./e2e/servers/nats", "./e2e/servers/temporal")
})

// BuildCluster builds the programs of a cluster once.
func BuildCluster(t *testing.T) {
	t.Helper()
	if err := buildCluster(); err != nil {
		t.Fatal(err)
	}
}

// Cluster is Perdure in its production form: any number of API and worker processes that share NATS
// and Temporal servers. Only the test's goroutine may use it.
type Cluster struct {
	Data     string
	Programs string // directory of the programs
	Agents   string
	Addrs    addresses // of NATS and Temporal
	Threads  *threadSet
	// Env is appended to the environment of every process.
	Env []string
	// NATSPasswords are the variables with the passwords of the users of NATS; nil = NATSPassword for
	// each.
	NATSPasswords []string
	// Servers are the servers in the order of their start. Nodes are all API and worker processes,
	// running or not. outputs has the output of every process.
	Servers []*Server
	Nodes   []*Process
	outputs []*Output
	// postgresDir is the directory of PostgreSQL, which is outside Data; "" = none.
	postgresDir string
	// search looks for content in Temporal's database after Temporal has stopped.
	search func() error
}

// API is one API process of a cluster.
type API struct {
	*Endpoint
	*Process
}

// NewCluster returns a cluster without servers. Its workflows and outputs are inspected when the
// test ends.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	BuildCluster(t)
	c := &Cluster{Programs: Programs, Agents: filepath.Join("testdata", "agents")}
	c.InspectAtEnd(t)
	return c
}

// SetupCluster returns a cluster with one process that runs both servers.
func SetupCluster(t *testing.T) *Cluster {
	t.Helper()
	c := NewCluster(t)
	c.StartServers(t)
	return c
}

// InspectAtEnd makes the data directory of the cluster, and has the cluster inspected and stopped
// when the test ends.
func (c *Cluster) InspectAtEnd(t *testing.T) {
	t.Helper()
	c.Data, c.Threads = filepath.Join(t.TempDir(), "data"), newThreadSet()
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(c.postgresDir) }()
		if err := c.InspectAndStop(context.WithoutCancel(t.Context()), !t.Failed()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i, o := range c.outputs {
				t.Logf("output of process %d:\n%s", i, o.String())
			}
		}
	})
}

// StartServers starts NATS and Temporal in one process.
func (c *Cluster) StartServers(t *testing.T, args ...string) {
	t.Helper()
	c.startServer(t, "servers", append(args, c.Data)...)
	c.search = func() error { return searchDatabase(c.Data) }
}

// Launch starts a process and waits until ready reports true for a line of its output.
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

// launchNode starts an API or a worker.
func (c *Cluster) launchNode(t *testing.T, name string, ready func(line []byte) bool) *Process {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.Programs, name))
	cmd.Env = append(os.Environ(), "PERDURE_STRICT=true")
	cmd.Env = append(cmd.Env, SharedModel.Environ()...)
	cmd.Env = append(cmd.Env, "NATS_URL="+c.Addrs.NATS, "TEMPORAL_ADDRESS="+c.Addrs.Temporal,
		"TEMPORAL_NAMESPACE="+c.Addrs.Namespace, "TEMPORAL_CONFIG_FILE=none", "NATS_USER=perdure-"+name, "NATS_PASSWORD="+NATSPassword)
	cmd.Env = append(cmd.Env, c.Env...)
	if name == "api" {
		cmd.Env = append(cmd.Env, "PERDURE_ADDR=127.0.0.1:0", "PERDURE_AGENTS="+c.Agents)
	}
	p := c.Launch(t, cmd, ready)
	c.Nodes = append(c.Nodes, p)
	return p
}

// logLine is a line of a process's log with the members that tests read.
type logLine struct {
	Message string `json:"msg"`
	Address string `json:"addr"`
}

// LaunchAPI starts an API process, and returns it with the address at which it listens.
func (c *Cluster) LaunchAPI(t *testing.T) (p *Process, address string) {
	t.Helper()
	var line logLine
	p = c.launchNode(t, "api", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "serving" })
	return p, line.Address
}

// StartAPI starts an API process.
func (c *Cluster) StartAPI(t *testing.T) *API {
	t.Helper()
	p, address := c.LaunchAPI(t)
	where := c.Addrs
	where.API = "http://" + address
	g := &API{Endpoint: NewEndpoint(c.Threads), Process: p}
	if err := g.Up(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	return g
}

// StartWorker starts a worker process.
func (c *Cluster) StartWorker(t *testing.T) *Process {
	t.Helper()
	var line logLine
	return c.launchNode(t, "worker", func(b []byte) bool { return json.Unmarshal(b, &line) == nil && line.Message == "working" })
}

// Logged returns the lines with a text in the outputs of all processes.
func (c *Cluster) Logged(text string) (lines []string) {
	for _, out := range c.outputs {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// StopNodes stops all API and worker processes that run.
func (c *Cluster) StopNodes() error {
	var g errgroup.Group
	for _, p := range c.Nodes {
		if p.running() {
			g.Go(p.Stop)
		}
	}
	return g.Wait()
}

// InspectAndStop stops all processes and looks for content in their databases and outputs. If the
// test has passed it inspects the workflows first, which needs a running worker.
func (c *Cluster) InspectAndStop(ctx context.Context, passed bool) error {
	if len(c.Servers) == 0 {
		return nil
	}
	var err error
	if passed {
		e := NewEndpoint(c.Threads)
		e.Addrs = c.Addrs
		close(e.up)
		err = e.inspect(ctx)
	}
	err = errors.Join(err, c.StopNodes())
	for _, s := range slices.Backward(c.Servers) {
		err = errors.Join(err, s.Stop())
	}
	if passed {
		err = errors.Join(err, c.search())
	}
	for _, o := range c.outputs {
		err = errors.Join(err, o.search())
	}
	return err
}

// AwaitReadyStatus waits until /readyz of an API returns the HTTP status.
func AwaitReadyStatus(t *testing.T, g *API, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	defer cancel()
	for {
		resp, err := g.Get(ctx, "/readyz", "")
		if err != nil {
			t.Fatalf("/readyz does not become %d: %v", want, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == want {
			return
		}
		<-time.After(20 * time.Millisecond) // poll interval
	}
}
