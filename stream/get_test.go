package stream_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestReadsOfTheOnlyCopy: a server that is no member of a cluster answers reads by direct gets, and
// the leader is asked only if there is no message.
func TestReadsOfTheOnlyCopy(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	lane := l.LaneSubject(run, stream.LaneMain)
	seq := must[uint64](t)(l.OpenStep(t.Context(), place("s", 0), nil, textContent("m", "said")))
	requests := streamtest.CountRequests(t, s)
	reads := map[string]func() (*stream.Record, error){
		"Last":  func() (*stream.Record, error) { return l.Last(t.Context(), lane) },
		"First": func() (*stream.Record, error) { return l.First(t.Context(), lane, 1) },
		"At":    func() (*stream.Record, error) { return l.At(t.Context(), seq) },
	}
	for name, read := range reads {
		rec := must[*stream.Record](t)(read())
		if rec.Sequence() != seq || rec.Kind != stream.KindOpen || rec.Step != "s" || rec.Lane != stream.LaneMain || time.Since(rec.Time) > time.Hour {
			t.Errorf("%s = %+v, want record %d", name, rec, seq)
		}
	}
	if rec := must[*stream.Record](t)(l.At(t.Context(), seq+1)); rec != nil {
		t.Errorf("At(%d) = %+v, want none", seq+1, rec)
	}
	got := requests()
	if direct, leader := got.Number("DIRECT.GET.PERDURE"), got.Number("STREAM.MSG.GET.PERDURE"); direct != 4 || leader != 1 {
		t.Errorf("got %d direct gets and %d requests to the leader, want 4 and 1", direct, leader)
	}
}

// TestMirrorsDoNotAnswerReads: a mirror of the log, which answers its direct gets too, may lack
// records that the log has.
func TestMirrorsDoNotAnswerReads(t *testing.T) {
	t.Parallel()
	const reads = 40 // the server sends each to the log or to the mirror, at random
	l := streamtest.Open(t)
	first := must[uint64](t)(l.OpenStep(t.Context(), place("s1", 0), nil, textContent("m", "one")))
	last := must[uint64](t)(l.OpenStep(t.Context(), place("s2", first), nil, textContent("m", "two")))
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	mirror := must[jetstream.Stream](t)(js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "copy", Mirror: &jetstream.StreamSource{Name: "PERDURE"}, AllowDirect: true, MirrorDirect: true,
	}))
	for must[*jetstream.StreamInfo](t)(mirror.Info(t.Context())).State.LastSeq != last {
		<-time.After(10 * time.Millisecond) // between two checks
	}
	if err := mirror.DeleteMsg(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	stale := 0
	for range reads {
		msg := must[*nats.Msg](t)(l.Conn().Request("$JS.API.DIRECT.GET.PERDURE", []byte(`{"last_by_subj":"perdure.>"}`), time.Minute))
		if msg.Header.Get("Nats-Stream") == "copy" {
			stale++
		}
		if rec := must[*stream.Record](t)(l.Last(t.Context(), l.LaneSubject(run, stream.LaneMain))); rec.Sequence() != last {
			t.Fatalf("Last = %d, want %d", rec.Sequence(), last)
		}
		if rec := must[*stream.Record](t)(l.At(t.Context(), last)); rec.Sequence() != last {
			t.Fatalf("At(%d) = %d, want %d", last, rec.Sequence(), last)
		}
	}
	if stale == 0 {
		t.Error("the mirror has answered no direct get of the log, want some")
	}
}

// TestReadsInClustersAskTheLeader: once the server is a member of a cluster, its stream may get
// replicas, which may lag.
func TestReadsInClustersAskTheLeader(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	start := func(cluster string) *server.Server {
		return streamtest.ServerWith(t, func(o *server.Options) {
			o.ServerName, o.StoreDir, o.Port, o.Cluster.Name = "n", dir, port, cluster
			if cluster != "" {
				o.JetStream, o.Cluster.Host, o.Cluster.Port = false, loopback, server.RANDOM_PORT
			}
		})
	}
	s := start("")
	lost, regained := make(chan struct{}), make(chan struct{})
	closeLost := sync.OnceFunc(func() { close(lost) }) // the connection is also lost at the end
	nc := must[*nats.Conn](t)(nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { closeLost() }), nats.ReconnectHandler(func(*nats.Conn) { close(regained) })))
	t.Cleanup(nc.Close)
	l := must[*stream.Log](t)(stream.Open(t.Context(), nc, stream.Options{}))
	if !l.HasOnlyCopy() {
		t.Error("HasOnlyCopy = false for a server on its own, want true")
	}
	s.Shutdown()
	s.WaitForShutdown()
	<-lost
	if l.HasOnlyCopy() {
		t.Error("HasOnlyCopy = true without a connection, want false")
	}
	start("c")
	<-regained
	if l.HasOnlyCopy() {
		t.Error("HasOnlyCopy = true for a member of a cluster, want false")
	}
}
