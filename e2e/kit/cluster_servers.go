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

// startServer starts a server program that prints its addresses when it is ready.
func (c *Cluster) startServer(t *testing.T, name string, args ...string) *Server {
	t.Helper()
	s := &Server{Args: args}
	s.launch = func(t *testing.T) *Process {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.Programs, name), s.Args...)
		cmd.Env = append(os.Environ(), c.Env...)
		where := c.Addrs
		p := c.Launch(t, cmd, func(line []byte) bool { return json.Unmarshal(line, &where) == nil })
		c.Addrs = where
		return p
	}
	s.Start(t)
	c.Servers = append(c.Servers, s)
	return s
}

// StartNATS starts one NATS node, or several that form a cluster, with the deployed configuration but
// without TLS.
func (c *Cluster) StartNATS(t *testing.T, nodes int, args ...string) []*Server {
	t.Helper()
	return c.StartNATSWith(t, filepath.Join("..", "deploy", "nats", "node.conf"), nodes, args...)
}

// StartNATSWith is like StartNATS, with another configuration file.
func (c *Cluster) StartNATSWith(t *testing.T, config string, nodes int, args ...string) []*Server {
	t.Helper()
	if c.NATSPasswords == nil {
		c.NATSPasswords = natsPasswords
	}
	c.Env = append(c.Env, c.NATSPasswords...)
	c.Env = append(c.Env, fmt.Sprintf("PERDURE_REPLICAS=%d", nodes))
	ports := FreePorts(t, 2*nodes)
	var urls, routes []string
	for i := range nodes {
		urls = append(urls, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i]))
		routes = append(routes, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i+1]))
	}
	var log []*Server
	for i := range nodes {
		name := fmt.Sprintf("nats-%d", i+1)
		all := []string{"-config", config,
			"-name", name, "-data", filepath.Join(c.Data, name), "-port", strconv.Itoa(ports[2*i])}
		if nodes > 1 {
			all = append(all, "-cluster-port", strconv.Itoa(ports[2*i+1]), "-routes", strings.Join(routes, ","))
		}
		log = append(log, c.startServer(t, "nats", append(all, args...)...))
	}
	c.Addrs.NATS = strings.Join(urls, ",")
	return log
}

// StartTemporal starts Temporal on SQLite. The same process runs a NATS that the cluster does not
// use.
func (c *Cluster) StartTemporal(t *testing.T) *Server {
	t.Helper()
	nats := c.Addrs.NATS
	dir := filepath.Join(c.Data, "temporal")
	s := c.startServer(t, "servers", "-temporal-port", strconv.Itoa(FreePorts(t, 1)[0]), dir)
	c.search = func() error { return searchDatabase(dir) }
	c.Addrs.NATS = nats
	return s
}

// FreePorts returns n adjacent free ports. They are below the ports that the system assigns to
// connections, so that a restarted server finds its port free.
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
