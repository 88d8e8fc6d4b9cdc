package stream_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

var kills = flag.Int("kills", 2, "how many nodes of a cluster are killed")

// nodeOptions is the environment variable that makes the test's program a node of a NATS cluster.
const nodeOptions = "STREAM_TEST_NODE"

// nodeConfig is the configuration of a node. Without a cluster port the node is standalone.
type nodeConfig struct {
	Name, Dir     string
	Port, Cluster int
	Routes        string
}

// serveNode runs a node until its standard input ends, at the latest when the test does.
func serveNode(config string) {
	var c nodeConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		panic(err)
	}
	o := &server.Options{ServerName: c.Name, Host: loopback, Port: c.Port, JetStream: true, StoreDir: c.Dir, NoSigs: true, NoLog: true}
	if c.Cluster != 0 {
		o.Cluster, o.Routes = server.ClusterOpts{Name: "test", Host: loopback, Port: c.Cluster}, server.RoutesFromStr(c.Routes)
	}
	s, err := server.NewServer(o)
	if err != nil {
		panic(err)
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
}

const loopback = "127.0.0.1"

// node is a NATS server in its own process.
type node struct {
	config nodeConfig
	url    string
	cmd    *exec.Cmd
	stdin  io.Closer
}

// start starts the server of a node.
func (n *node) start(t *testing.T) {
	t.Helper()
	config := must[[]byte](t)(json.Marshal(n.config))
	n.cmd = exec.Command(must[string](t)(os.Executable()))
	n.cmd.Env, n.cmd.Stderr = append(os.Environ(), nodeOptions+"="+string(config)), os.Stderr
	n.stdin = must[io.WriteCloser](t)(n.cmd.StdinPipe())
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill kills the process with SIGKILL.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

// natsCluster is three nodes in their own processes.
type natsCluster []*node

// startNodes starts a NATS cluster of three nodes.
func startNodes(t *testing.T) natsCluster {
	t.Helper()
	var c natsCluster
	var routes []string
	for i := range 3 {
		n := &node{config: nodeConfig{Name: "n" + strconv.Itoa(i), Dir: filepath.Join(t.TempDir(), strconv.Itoa(i)), Port: freePort(t), Cluster: freePort(t)}}
		n.url = "nats://" + net.JoinHostPort(loopback, strconv.Itoa(n.config.Port))
		routes = append(routes, "nats://"+net.JoinHostPort(loopback, strconv.Itoa(n.config.Cluster)))
		c = append(c, n)
	}
	for _, n := range c {
		n.config.Routes = strings.Join(routes, ",")
		n.start(t)
		t.Cleanup(n.kill)
	}
	return c
}

// ports is the number of ports that freePort has tried, from a random beginning.
var ports atomic.Int64

func init() { ports.Store(int64(rand.IntN(1 << 20))) }

// freePort returns a port that stays free while its node is down: it is below the range of ports
// for outgoing connections, and no two nodes of this process get the same one. A cluster with a
// node that cannot listen never has three replicas.
func freePort(t *testing.T) int {
	t.Helper()
	const lowest, highest = 15000, 32000
	for range 100 {
		port := lowest + int(ports.Add(1)%(highest-lowest))
		if l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// dial connects to one node, and to another one while the first is away.
func (c natsCluster) dial(t *testing.T, first int) *nats.Conn {
	t.Helper()
	urls := []string{c[first].url, c[(first+1)%3].url, c[(first+2)%3].url}
	nc := must[*nats.Conn](t)(nats.Connect(strings.Join(urls, ","), nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond)))
	t.Cleanup(nc.Close)
	return nc
}

// open opens the log.
func (c natsCluster) open(t *testing.T, ctx context.Context, first int) *stream.Log {
	t.Helper()
	nc := c.dial(t, first)
	for {
		opening, cancel := context.WithTimeout(ctx, 2*time.Second)
		l, err := stream.Open(opening, nc, stream.Options{Replicas: 3})
		cancel()
		if err == nil {
			return l
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond) // between two attempts
	}
}

// leader waits until all replicas of the log are up to date, and returns the index of the leader.
func (c natsCluster) leader(t *testing.T, ctx context.Context, l *stream.Log) int {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(asking, "PERDURE")
		cancel()
		if err == nil && s.CachedInfo().Cluster != nil {
			i := s.CachedInfo().Cluster
			lag := len(i.Replicas) != 2 || slices.ContainsFunc(i.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
			if i.Leader != "" && !lag {
				return slices.IndexFunc(c, func(n *node) bool { return n.config.Name == i.Leader })
			}
		}
		<-time.After(20 * time.Millisecond) // between two checks
	}
	t.Fatal("the replicas do not become current")
	return 0
}

// TestReadersSurviveNodes: nodes of the cluster die, alternately the log's leader and another one,
// while readers follow the log on all nodes. Each reader gets every record exactly once, in order,
// soon after it is written and before the node is back. "go test ./stream -run Nodes -kills 100"
// kills more nodes.
func TestReadersSurviveNodes(t *testing.T) {
	// Not in parallel: it measures time, and its nodes use what other tests need.
	const perNode, limit = 2, 12 * time.Second // includes the election of two leaders
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(*kills)*30*time.Second)
	defer cancel()
	c := startNodes(t)
	w := &writer{log: c.open(t, ctx, 0)}
	var tails []*stream.Tail
	for i := range perNode * len(c) {
		tail := streamtest.Follow(t, c.open(t, ctx, i%len(c))).Tail(run)
		t.Cleanup(tail.Close)
		tails = append(tails, tail)
	}
	for kill := range *kills {
		victim := (c.leader(t, ctx, w.log) + kill%2) % len(c)
		w.write(t, ctx, 10)
		c[victim].kill()
		killed := time.Now()
		w.write(t, ctx, 10)
		written := time.Now()
		for i, tail := range tails {
			wantRecords(t, ctx, fmt.Sprintf("kill %d, reader %d", kill, i), tail, w.written)
		}
		t.Logf("node %d killed, written on after %s, read after %s more", victim, written.Sub(killed).Round(time.Millisecond), time.Since(written).Round(time.Millisecond))
		took := time.Since(written)
		if took > limit {
			t.Errorf("kill %d: outage = %v, want at most %v", kill, took, limit)
		}
		w.written = nil
		c[victim].start(t)
	}
}

// writer writes records to a lane.
type writer struct {
	log     *stream.Log
	last    uint64
	written []uint64
}

// write writes a number of records.
func (w *writer) write(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	for range n {
		w.last = must[uint64](t)(w.log.OpenStep(ctx, place(fmt.Sprint(w.last), w.last), nil, textContent("m", "said")))
		w.written = append(w.written, w.last)
	}
}

// wantRecords reads the wanted records and fails the test if it reads others.
func wantRecords(t *testing.T, ctx context.Context, who string, tail *stream.Tail, want []uint64) {
	t.Helper()
	for len(want) > 0 {
		records, err := tail.Next(ctx, time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		if len(records) == 0 {
			t.Errorf("%s: number of records = %v, want at least 1", who, len(records))
		}
		for _, r := range records {
			if len(want) == 0 || r.Seq != want[0] {
				t.Fatalf("%s: got record %d, want %v", who, r.Seq, want)
			}
			want = want[1:]
		}
	}
}
