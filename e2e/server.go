package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outageLength is how long a server stays away: 10 s, or as E2E_OUTAGE says.
var outageLength = func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("E2E_OUTAGE"))
	if err != nil {
		return 10 * time.Second
	}
	return d
}()

// server is something that nodes need and that can go away for a while.
type server struct {
	*process
	args []string
	// again starts it as it was before, on the same data and the same port.
	again func(t *testing.T) *process
}

// start starts a server, or brings it back.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = s.again(t)
}

// freeze stops a server where it is: its connections stay, and nothing is answered.
func (s *server) freeze(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// thaw lets it go on.
func (s *server) thaw(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

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

// account is the user that the deployed configuration of NATS lets in.
var account = []string{"NATS_USER=perdure", "NATS_PASSWORD=perdure"}

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

// listens reports whether a port can be listened on.
func listens(t *testing.T, port int) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
