package presence_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestNodeOfWorkerDies: the NATS node of a worker dies. The worker reconnects to another node, and no
// worker takes it for dead.
func TestNodeOfWorkerDies(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	first := openAt(t, nodes)
	kv, err := first.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "workers", Storage: jetstream.FileStorage})
	if err != nil {
		t.Fatal(err)
	}
	lead := leader(t, first, kv.Bucket(), nodes)
	slices.SortFunc(nodes, func(a, b *server.Server) int { // its leader first: beats continue when the last node dies
		if a.Name() == lead {
			return -1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	found := watchDeaths(t, openAt(t, nodes), "a")
	found.start(t, openAt(t, []*server.Server{nodes[2], nodes[1], nodes[0]}), "b")
	victim := openAt(t, nodes)
	watchDeaths(t, victim, "c")
	awaitAnswer(t, nodes[0], "a", "b")

	nodes[2].Shutdown()
	victim.Conn().Close() // its death is noticed after that of b would be
	found.want(t, "c")
}

// startCluster starts three nodes.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	const size = 3
	var routes []string
	var ports []int
	for range size {
		ports = append(ports, freePort(t))
		routes = append(routes, "nats://127.0.0.1:"+strconv.Itoa(ports[len(ports)-1]))
	}
	var nodes []*server.Server
	for i := range size {
		nodes = append(nodes, streamtest.ServerWith(t, func(o *server.Options) {
			o.ServerName, o.Cluster = "node-"+strconv.Itoa(i), server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]}
			o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		}))
	}
	return nodes
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// openAt opens the log with a connection to the first of some nodes, which moves to the next ones
// when its node dies. A cluster that starts needs some seconds.
func openAt(t *testing.T, nodes []*server.Server) *stream.Log {
	t.Helper()
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.ClientURL())
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.DontRandomize(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for late := time.After(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		l, err := stream.Open(ctx, nc, stream.Options{Replicas: len(nodes)})
		cancel()
		if err == nil {
			return l
		}
		select {
		case <-late:
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond): // between two attempts
		}
	}
}

// leader waits until all replicas of a bucket are current, and returns the name of the leader's node.
func leader(t *testing.T, l *stream.Log, bucket string, nodes []*server.Server) string {
	t.Helper()
	js, err := jetstream.New(l.Conn())
	if err != nil {
		t.Fatal(err)
	}
	for late := time.After(time.Minute); ; {
		s, err := js.Stream(t.Context(), "KV_"+bucket)
		if err == nil {
			c := s.CachedInfo().Cluster
			lags := len(c.Replicas) != len(nodes)-1 || slices.ContainsFunc(c.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
			if c.Leader != "" && !lags {
				return c.Leader
			}
		}
		select {
		case <-late:
			t.Fatalf("the replicas do not become current: %v", err)
		case <-time.After(50 * time.Millisecond): // between two checks
		}
	}
}

// TestServerRestarts: the only NATS server restarts, and one worker reconnects more than a second
// later than the other one. Neither takes the other one for dead.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	start := func() *server.Server {
		return streamtest.ServerWith(t, func(o *server.Options) { o.StoreDir, o.Port = dir, port })
	}
	open := func(wait time.Duration, reconnected chan<- bool) *stream.Log {
		nc, err := nats.Connect("nats://127.0.0.1:"+strconv.Itoa(port), nats.MaxReconnects(-1), nats.ReconnectWait(wait), nats.ReconnectJitter(0, 0),
			nats.ReconnectHandler(func(*nats.Conn) { reconnected <- true }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		l, err := stream.Open(t.Context(), nc, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s := start()
	early, late := make(chan bool, 1), make(chan bool, 1)
	found := watchDeaths(t, open(10*time.Millisecond, early), "early")
	found.start(t, open(1500*time.Millisecond, late), "late")
	awaitAnswer(t, s, "early", "late")
	s.Shutdown()
	s.WaitForShutdown()
	start()
	for name, reconnected := range map[string]chan bool{"early": early, "late": late} {
		select {
		case <-reconnected:
		case <-time.After(time.Minute):
			t.Fatalf("the worker %s does not reconnect", name)
		}
	}
	select {
	case line := <-found:
		t.Errorf("a worker says %s, want nothing", line)
	default:
	}
}
