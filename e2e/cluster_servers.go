package e2e

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
func (c *cluster) serve(t *testing.T, name string, args ...string) *server {
	t.Helper()
	s := &server{args: args}
	s.again = func(t *testing.T) *process {
		t.Helper()
		cmd := exec.Command(filepath.Join(c.programs, name), s.args...)
		cmd.Env = append(os.Environ(), c.settings...)
		where := c.where
		p := c.launch(t, cmd, func(line []byte) bool { return json.Unmarshal(line, &where) == nil })
		c.where = where
		return p
	}
	s.start(t)
	c.servers = append(c.servers, s)
	return s
}

// startLog starts NATS, with the configuration that is deployed: one node, or several that make a
// cluster.
func (c *cluster) startLog(t *testing.T, nodes int, args ...string) []*server {
	t.Helper()
	c.settings = append(c.settings, account...)
	c.settings = append(c.settings, fmt.Sprintf("PERDURE_REPLICAS=%d", nodes))
	ports := freePorts(t, 2*nodes)
	var urls, routes []string
	for i := range nodes {
		urls = append(urls, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i]))
		routes = append(routes, "nats://127.0.0.1:"+strconv.Itoa(ports[2*i+1]))
	}
	var log []*server
	for i := range nodes {
		name := fmt.Sprintf("nats-%d", i+1)
		all := []string{"-config", filepath.Join("..", "deploy", "nats", "perdure.conf"),
			"-name", name, "-data", filepath.Join(c.data, name), "-port", strconv.Itoa(ports[2*i])}
		if nodes > 1 {
			all = append(all, "-cluster-port", strconv.Itoa(ports[2*i+1]), "-routes", strings.Join(routes, ","))
		}
		log = append(log, c.serve(t, "nats", append(all, args...)...))
	}
	c.where.NATS = strings.Join(urls, ",")
	return log
}

// startTemporal starts Temporal on SQLite, with a NATS beside it that nobody uses.
func (c *cluster) startTemporal(t *testing.T) *server {
	t.Helper()
	nats := c.where.NATS
	dir := filepath.Join(c.data, "temporal")
	s := c.serve(t, "servers", "-temporal-port", strconv.Itoa(freePorts(t, 1)[0]), dir)
	c.search = func() error { return searchDatabase(dir) }
	c.where.NATS = nats
	return s
}

// freePorts finds adjacent ports that nobody listens on, below those that the system gives to
// connections: a server that is away finds its own free when it comes back.
func freePorts(t *testing.T, n int) []int {
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
