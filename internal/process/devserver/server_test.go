package devserver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// unusedActivity is the activity of workers that execute none.
func unusedActivity(context.Context) (int32, error) { return 0, nil }

func TestDataSurvivesRestart(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	// A path that has to be escaped in a URI.
	dir := filepath.Join(t.TempDir(), "da ta%20#1?x=y")

	s := mustStart(t, Options{Data: dir})
	c := mustDial(t, s)
	w := newWorker(c, unusedActivity)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	run, err := c.ExecuteWorkflow(ctx, workflowOptions("thread/t/waits"), signalWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	if err := awaitFirstTask(ctx, c, run); err != nil { // a task under way would be an orphan
		t.Fatal(err)
	}
	publish(t, s, "kept")
	w.Stop()
	c.Close()
	mustStop(t, s)

	s = mustStart(t, Options{Data: dir})
	if got := s.Orphans(); len(got) != 0 {
		t.Errorf("Orphans after a clean stop = %v, want none", got)
	}
	c = mustDial(t, s)
	w = newWorker(c, unusedActivity)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.SignalWorkflow(ctx, run.GetID(), run.GetRunID(), "tell", "hello"); err != nil {
		t.Fatal(err)
	}
	var result string
	if err := c.GetWorkflow(ctx, run.GetID(), run.GetRunID()).Get(ctx, &result); err != nil || result != "hello" {
		t.Errorf("result = %q, %v; want hello", result, err)
	}
	if got := lastMessage(t, s); got != "kept" {
		t.Errorf("last message = %q, want kept", got)
	}
}

// publish stores one message on disk. It creates the stream if needed.
func publish(t *testing.T, s *Server, data string) {
	t.Helper()
	js := mustJetStream(t, s)
	cfg := jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log"}, Storage: jetstream.FileStorage}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "log", []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// lastMessage returns the last message of the test's stream.
func lastMessage(t *testing.T, s *Server) string {
	t.Helper()
	stream, err := mustJetStream(t, s).Stream(t.Context(), "LOG")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetLastMsgForSubject(t.Context(), "log")
	if err != nil {
		t.Fatal(err)
	}
	return string(msg.Data)
}

// mustJetStream connects to the server's JetStream.
func mustJetStream(t *testing.T, s *Server) jetstream.JetStream {
	t.Helper()
	nc, err := s.ConnectNATS(nats.Name(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestNATSListensOnLoopback(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Options{Data: t.TempDir()})
	if !strings.HasPrefix(s.NATSURL(), "nats://127.0.0.1:") || !strings.HasPrefix(s.TemporalAddress(), "127.0.0.1:") {
		t.Errorf("listening on %s and %s, want loopback", s.NATSURL(), s.TemporalAddress())
	}
	nc, err := nats.Connect(s.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestNamespaceIsComplete(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := mustStart(t, Options{Data: t.TempDir(), Namespace: "mine"})
	c := mustDial(t, s)
	ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != retention {
		t.Errorf("retention = %v, want %v", got, retention)
	}
	attributes, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]enums.IndexedValueType{
		"PerdureAgent": enums.INDEXED_VALUE_TYPE_KEYWORD, "PerdureRun": enums.INDEXED_VALUE_TYPE_KEYWORD,
		"PerdureTenant": enums.INDEXED_VALUE_TYPE_KEYWORD,
	}
	if diff := cmp.Diff(want, attributes.GetCustomAttributes()); diff != "" {
		t.Errorf("search attributes (-want +got):\n%s", diff)
	}
}

func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustStart(t, Options{Data: dir})
	_, err := Start(testContext(t), Options{Data: dir})
	locked, ok := errors.AsType[*LockedError](err)
	if !ok {
		t.Fatalf("second Start: %v, want a LockedError", err)
	}
	if locked.PID != os.Getpid() || locked.Dir != dir {
		t.Errorf("LockedError = %+v, want this process (%d) and %s", locked, os.Getpid(), dir)
	}
}

func TestStopIsIdempotentAndBounded(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Options{Data: t.TempDir()})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Stop with an ended context = %v, want nil or %v", err, context.Canceled)
	}
	mustStop(t, s)
	mustStop(t, s)
}

func TestErrorOfUsedPortNamesFlag(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // the subtests outlive this function
	taken := l.Addr().(*net.TCPAddr).Port
	for flag, o := range map[string]Options{
		"--temporal-port": {TemporalPort: taken},
		"--nats-port":     {NATSPort: taken},
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			o.Data = t.TempDir()
			_, err := Start(testContext(t), o)
			port, ok := errors.AsType[*PortError](err)
			if !ok || port.Port != taken || !strings.Contains(err.Error(), flag) {
				t.Fatalf("Start = %v, want a PortError naming %s", err, flag)
			}
			// The failed start holds no lock and no port.
			mustStart(t, Options{Data: o.Data})
		})
	}
}
