package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What holds on one NATS node and SQLite holds in production's shape too: three nodes with three
// replicas, Temporal on PostgreSQL, configured by the files that are deployed. And there a node of
// the log may die.
func TestLargeCluster(t *testing.T) {
	// Not in parallel: it measures.
	c := newCluster(t)
	c.startTemporalOnPostgres(t)
	log := c.startLog(t, 3)
	for _, part := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"ReadElsewhere", func(t *testing.T) { readElsewhere(t, c) }},
		{"WorkerKill", func(t *testing.T) { killWorkers(t, c) }},
		{"APIKill", func(t *testing.T) { killAPI(t, c) }},
		{"Terminate", func(t *testing.T) { terminateNodes(t, c, 2*takeover) }},
		{"CancelElsewhere", func(t *testing.T) { cancelElsewhere(t, c) }},
		{"LogNodeKill", func(t *testing.T) { killLogNodes(t, c, log) }},
		{"LeaderStepDown", func(t *testing.T) { stepDown(t, c) }},
	} {
		passed := t.Run(part.name, func(t *testing.T) {
			part.test(t)
			if err := c.stopNodes(); err != nil {
				t.Error(err)
			}
		})
		if !passed {
			return // what it left behind would fail the others as well
		}
	}
	c.startWorker(t) // workflows that have still to close
}

// steady is a run of one attempt and its readers: one stays with its api, the other one moves to
// another whenever its api goes.
type steady struct {
	in      input
	answer  string
	readers []*follower
}

// startSteady starts runs that last for some seconds, each read at all apis.
func startSteady(t *testing.T, n, size int, apis ...*gateway) []steady {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var runs []steady
	for range n {
		r := steady{in: newInput(say("Slowly, please.")), answer: long(size)}
		sharedModel.attempts(t, r.in.Messages[0].Content, pours(r.answer))
		for _, a := range apis {
			f := a.quiet(ctx, r.in)
			t.Cleanup(f.cut)
			f.until(t, func(e event) bool { return e.Type == "RUN_STARTED" }) // 503 until the log has a leader
			r.readers = append(r.readers, f)
		}
		runs = append(runs, r)
	}
	return runs
}

// goOn waits until every reader has been shown n more pieces of its answer.
func goOn(t *testing.T, runs []steady, n int) {
	t.Helper()
	for _, r := range runs {
		for _, f := range r.readers {
			f.contents(t, n)
		}
	}
}

// finishSteady reads the runs to their ends: every reader has been shown the same, none of it
// twice, and the model was called once.
func finishSteady(t *testing.T, runs []steady) {
	t.Helper()
	for _, r := range runs {
		for _, f := range r.readers {
			f.finish(t)
			same(t, "another reader", r.readers[0].events, f.events)
		}
		wantMessages(t, append(slices.Clone(r.in.Messages), says(r.answer)), show(t, r.in.Messages, r.readers[0].events))
		same(t, "the run, asked for again", r.readers[0].events, r.readers[0].p.run(t, r.in))
		if n := len(sharedModel.calls(t, r.in.Messages[0].Content)); n != 1 {
			t.Errorf("%d model calls, want 1", n)
		}
	}
}

// The node dies that leads the log while streams are open, and when it is back the next leader
// does. Runs go on, and end, on the two that are left.
func killLogNodes(t *testing.T, c *cluster, log []*server) {
	t.Helper()
	a, b := c.startAPI(t), c.startAPI(t)
	c.startWorker(t)
	c.startWorker(t)
	runs := startSteady(t, 10, 3_000, a, b)
	goOn(t, runs, 3)
	first := log[leader(t, c)]
	first.kill()
	goOn(t, runs, 3)
	finishSteady(t, runs[:5])
	first.start(t)
	replicated(t, c)
	second := log[leader(t, c)]
	second.kill()
	late := startSteady(t, 5, 600, a, b)
	finishSteady(t, append(runs[5:], late...))
	second.start(t)
	replicated(t, c)
}

// The log changes its leader again and again while streams are open.
func stepDown(t *testing.T, c *cluster) {
	t.Helper()
	a, b := c.startAPI(t), c.startAPI(t)
	c.startWorker(t)
	c.startWorker(t)
	runs := startSteady(t, 10, 2_500, a, b)
	for range 5 {
		goOn(t, runs, 1)
		nc := connect(t, c)
		if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.PERDURE", nil, patience); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		leader(t, c)
	}
	finishSteady(t, runs)
}

func connect(t *testing.T, c *cluster) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(c.where.NATS, nats.UserInfo("perdure", "perdure"), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// leader waits until the log has a leader and tells which node it is, from 0.
func leader(t *testing.T, c *cluster) int {
	t.Helper()
	return slices.Index([]string{"nats-1", "nats-2", "nats-3"}, inspectLog(t, c, func(i *jetstream.ClusterInfo) bool { return i.Leader != "" }).Leader)
}

// replicated waits until all replicas of the log are up to date.
func replicated(t *testing.T, c *cluster) {
	t.Helper()
	inspectLog(t, c, func(i *jetstream.ClusterInfo) bool {
		return i.Leader != "" && len(i.Replicas) == 2 && !slices.ContainsFunc(i.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
	})
}

// inspectLog waits for a state of the log's cluster.
func inspectLog(t *testing.T, c *cluster, fits func(*jetstream.ClusterInfo) bool) *jetstream.ClusterInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		<-time.After(20 * time.Millisecond) // between two looks
	}
	t.Fatalf("the log does not come to be as it should: %v", last)
	return nil
}
