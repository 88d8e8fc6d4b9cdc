package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/e2e/kit"
)

// TestLargeCluster: the tests of the small cluster also hold in the shape of production: three NATS
// nodes with three replicas and Temporal on PostgreSQL, with the deployed configuration. In
// addition, nodes of the log may die.
func TestLargeCluster(t *testing.T) {
	// Not parallel: the test measures time.
	c := kit.NewCluster(t)
	c.StartTemporalOnPostgres(t)
	log := c.StartNATS(t, 3)
	for _, part := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"ReadElsewhere", func(t *testing.T) { readElsewhere(t, c) }},
		{"WorkerKill", func(t *testing.T) { killWorkers(t, c) }},
		{"APIKill", func(t *testing.T) { killAPI(t, c) }},
		{"Terminate", func(t *testing.T) { terminateNodes(t, c, takeover) }},
		{"CancelElsewhere", func(t *testing.T) { cancelElsewhere(t, c) }},
		{"LogNodeKill", func(t *testing.T) { killLogNodes(t, c, log) }},
		{"LeaderStepDown", func(t *testing.T) { stepDown(t, c) }},
	} {
		passed := t.Run(part.name, func(t *testing.T) {
			part.test(t)
			if err := c.StopNodes(); err != nil {
				t.Error(err)
			}
		})
		if !passed {
			return // its workflows would fail the other tests
		}
	}
	c.StartWorker(t) // so that open workflows end
}

// TestNATSNodesAreKilled: each node of NATS is killed once during runs, so that each worker loses its
// connection. The workers reconnect to another node. No worker takes another one for dead.
func TestNATSNodesAreKilled(t *testing.T) {
	// Not parallel: workers that wait for the CPU reconnect late.
	c := kit.NewCluster(t)
	log := c.StartNATS(t, 3)
	c.StartTemporal(t)
	a := c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	for _, node := range log {
		runs := startSteady(t, 6, 1_500, a)
		untilContent(t, runs, 3)
		node.Kill()
		for _, r := range runs { // no further request: the audit log may have no leader for seconds
			r.readers[0].Finish(t)
		}
		node.Start(t)
		replicated(t, c)
	}
	if deaths := c.Logged("dead worker"); len(deaths) > 0 {
		t.Errorf("workers take others for dead: %q, want none", deaths)
	}
}

// steadyRun is a run of one attempt with two readers. One stays at its API, the other moves to
// another API whenever its own is down.
type steadyRun struct {
	in      kit.Input
	answer  string
	readers []*kit.Follower
}

// startSteady starts runs that last for some seconds, each read at all APIs.
func startSteady(t *testing.T, n, size int, apis ...*kit.API) []steadyRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	t.Cleanup(cancel)
	var runs []steadyRun
	for range n {
		r := steadyRun{in: kit.NewInput(kit.Marked("Slowly, please.")), answer: kit.LongText(size)}
		kit.SharedModel.AnswerInOrder(t, r.in.Messages[0].Content, kit.SlowAnswer(r.answer))
		for _, a := range apis {
			f := a.NewUnrecordedFollower(ctx, r.in)
			t.Cleanup(f.Cut)
			f.Until(t, func(e kit.Event) bool { return e.Type == "RUN_STARTED" }) // 503 until the log has a leader
			r.readers = append(r.readers, f)
		}
		runs = append(runs, r)
	}
	return runs
}

// untilContent waits until every reader has n more events with text.
func untilContent(t *testing.T, runs []steadyRun, n int) {
	t.Helper()
	for _, r := range runs {
		for _, f := range r.readers {
			f.UntilContent(t, n)
		}
	}
}

// finishSteady reads the runs to their ends. All readers must have the same events, none twice, and
// the model was called once.
func finishSteady(t *testing.T, runs []steadyRun) {
	t.Helper()
	for _, r := range runs {
		for _, f := range r.readers {
			f.Finish(t)
			kit.WantSameEvents(t, "another reader", r.readers[0].Events, f.Events)
		}
		kit.WantMessages(t, append(slices.Clone(r.in.Messages), kit.AssistantMessage(r.answer)), kit.ShownMessages(t, r.in.Messages, r.readers[0].Events))
		kit.WantSameEvents(t, "the run, asked for again", r.readers[0].Events, r.readers[0].Endpoint.Run(t, r.in))
		if n := len(kit.SharedModel.Calls(t, r.in.Messages[0].Content)); n != 1 {
			t.Errorf("%d model calls, want 1", n)
		}
	}
}

// killLogNodes kills the leader of the log while streams are open, restarts it, and then the next
// leader dies. Runs continue and end on the remaining two nodes.
func killLogNodes(t *testing.T, c *kit.Cluster, log []*kit.Server) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	runs := startSteady(t, 10, 3_000, a, b)
	untilContent(t, runs, 3)
	first := log[leader(t, c)]
	first.Kill()
	untilContent(t, runs, 3)
	finishSteady(t, runs[:5])
	first.Start(t)
	replicated(t, c)
	second := log[leader(t, c)]
	second.Kill()
	late := startSteady(t, 5, 600, a, b)
	finishSteady(t, append(runs[5:], late...))
	second.Start(t)
	replicated(t, c)
}

// stepDown changes the leader of the log several times while streams are open.
func stepDown(t *testing.T, c *kit.Cluster) {
	t.Helper()
	a, b := c.StartAPI(t), c.StartAPI(t)
	c.StartWorker(t)
	c.StartWorker(t)
	runs := startSteady(t, 10, 2_500, a, b)
	for range 5 {
		untilContent(t, runs, 1)
		nc := connect(t, c)
		if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.PERDURE", nil, kit.WaitTimeout); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		leader(t, c)
	}
	finishSteady(t, runs)
}

// connect connects to the cluster's NATS.
func connect(t *testing.T, c *kit.Cluster) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(c.Addrs.NATS, nats.UserInfo("perdure-admin", kit.NATSPassword), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// leader waits until the log has a leader, and returns the index of its node.
func leader(t *testing.T, c *kit.Cluster) int {
	t.Helper()
	return slices.Index([]string{"nats-1", "nats-2", "nats-3"}, inspectLog(t, c, func(i *jetstream.ClusterInfo) bool { return i.Leader != "" }).Leader)
}

// replicated waits until all replicas of the log are current.
func replicated(t *testing.T, c *kit.Cluster) {
	t.Helper()
	inspectLog(t, c, func(i *jetstream.ClusterInfo) bool {
		return i.Leader != "" && len(i.Replicas) == 2 && !slices.ContainsFunc(i.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
	})
}

// inspectLog waits for a state of the log's cluster.
func inspectLog(t *testing.T, c *kit.Cluster, fits func(*jetstream.ClusterInfo) bool) *jetstream.ClusterInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	nc := connect(t, c)
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for ctx.Err() == nil {
		asking, end := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(asking, "PERDURE")
		end()
		if last = err; err == nil && s.CachedInfo().Cluster != nil && fits(s.CachedInfo().Cluster) {
			return s.CachedInfo().Cluster
		}
		<-time.After(20 * time.Millisecond) // poll interval
	}
	t.Fatalf("the log does not reach the wanted state: %v", last)
	return nil
}
