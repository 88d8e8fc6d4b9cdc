package kit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// serve starts a server that tells its addresses when it is ready.
func (c *Cluster) serve(t *testing.T, name string, args ...string) *Server {
	t.Helper()
	s := &Server{Args: args}
	s.again = func(t *testing.T) *Process {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.Programs, name), s.Args...)
		cmd.Env = append(os.Environ(), c.Settings...)
		where := c.Where
		p := c.Launch(t, cmd, func(line []byte) bool { return json.Unmarshal(line, &where) == nil })
		c.Where = where
		return p
	}
	s.Start(t)
	c.Servers = append(c.Servers, s)
	return s
}

// StartLog starts NATS, with the configuration that is deployed: one node, or several that make a
// cluster.
func (c *Cluster) StartLog(t *testing.T, nodes int, args ...string) []*Server {
	t.Helper()
	c.Settings = append(c.Settings, account...)
	c.Settings = append(c.Settings, fmt.Sprintf("PERDURE_REPLICAS=%d", nodes))
	ports := FreePorts(t, 2*nodes)
	var urls, routes []string
	for i := range nodes {
		urls = append(urls, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i]))
		routes = append(routes, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i+1]))
	}
	var log []*Server
	for i := range nodes {
		name := fmt.Sprintf("nats-%d", i+1)
		all := []string{"-config", filepath.Join("..", "deploy", "nats", "perdure.conf"),
			"-name", name, "-data", filepath.Join(c.Data, name), "-port", strconv.Itoa(ports[2*i])}
		if nodes > 1 {
			all = append(all, "-cluster-port", strconv.Itoa(ports[2*i+1]), "-routes", strings.Join(routes, ","))
		}
		log = append(log, c.serve(t, "nats", append(all, args...)...))
	}
	c.Where.NATS = strings.Join(urls, ",")
	return log
}

// StartTemporal starts Temporal on SQLite, with a NATS beside it that nobody uses.
func (c *Cluster) StartTemporal(t *testing.T) *Server {
	t.Helper()
	nats := c.Where.NATS
	dir := filepath.Join(c.Data, "temporal")
	s := c.serve(t, "servers", "-temporal-port", strconv.Itoa(FreePorts(t, 1)[0]), dir)
	c.search = func() error { return searchDatabase(dir) }
	c.Where.NATS = nats
	return s
}

// FreePorts finds adjacent ports that nobody listens on, below those that the system gives to
// connections: a server that is away finds its own free when it comes back.
func FreePorts(t *testing.T, n int) []int {
	t.Helper()
	const lowest, highest = 15000, 32000
	for range 100 {
		first := lowest + rand.IntN(highest-lowest-n)
		var ports []int
		for port := first; port < first+n && listens(t, port); port++ {
			ports = append(ports, port)
		}
		if len(ports) == n {
			return ports
		}
	}
	t.Fatalf("there are no %d free ports", n)
	return nil
}
