package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// startViewedRun posts an input, and returns the response for reading and the run's speaker.
func (n *node) startViewedRun(runs *capturedOutputs, id string) (*frameReader, *agentOutput) {
	n.t.Helper()
	body, err := json.Marshal(inputOf(id, "hello"))
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodPost, n.http.URL+"/v1/agents/a/runs", strings.NewReader(string(body)))
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &frameReader{t: n.t, body: lines}, runs.next(n)
}

// bareViewer returns the raw connection of a viewer, without read-ahead or memory of a client
// library.
func bareViewer(t *testing.T, base, path string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return conn
}

const eventsOfR1 = "/v1/threads/t/runs/r1/events"

// frames returns the events of a body, each with its ID.
func frames(body string) []string {
	var all []string
	for frame := range strings.SplitSeq(body, "\n\n") {
		if strings.HasPrefix(frame, "id: ") && strings.Contains(frame, "\ndata: ") {
			all = append(all, frame)
		}
	}
	return all
}

// TestSlowViewerIsDisconnected: a viewer that does not read is disconnected and counted. After it
// reconnects it gets the missing events. Other viewers of the same run and node are not affected.
func TestSlowViewerIsDisconnected(t *testing.T) {
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	node := setup(t)
	disconnected := make(chan struct{}, 1)
	narrow := node.serveOn(t, func(l net.Listener) net.Listener {
		return &smallBufferListener{Listener: l, disconnected: disconnected}
	}, withShortWriteTimeout)
	steady, s := node.startViewedRun(node.captureOutputs(), "r1")
	slow := bareViewer(t, narrow, eventsOfR1)

	var all strings.Builder
	text := strings.Repeat("x", 32<<10)
	for range 100 { // far more than the buffers of a narrow connection, and less than a node keeps of a thread
		s.say(text)
		all.WriteString(steady.until(text))
	}
	<-disconnected
	s.end()
	all.WriteString(steady.until("RUN_FINISHED"))

	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Fatal("error of the slow viewer = nil, want an error")
	}
	if i := strings.LastIndex(string(body), "\n\n"); i >= 0 {
		body = body[:i] // the rest is incomplete
	}
	head := frames(string(body))
	if len(head) == 0 {
		t.Errorf("slow viewer = %v, want at least 1", len(head))
	}
	if len(head) >= len(frames(all.String())) {
		t.Errorf("slow viewer = %v, want less than %v", len(head), len(frames(all.String())))
	}
	last := cursors(head[len(head)-1])[0]
	rest := node.do(http.MethodGet, eventsOfR1, "", "Last-Event-ID", last)
	if diff := cmp.Diff(frames(all.String()+"\n"), slices.Concat(head, frames(rest.body))); diff != "" {
		t.Errorf("events of the slow viewer (-want +got): %.2000s", diff)
	}
	if cuts := counterValue(t, reader, "perdure.viewers.ended", attribute.String("end", "slow")); cuts != 1 {
		t.Errorf("slow viewers in the metric: got %d, want 1", cuts)
	}
}

// counterValue returns the value of a counter.
func counterValue(t *testing.T, reader metric.Reader, name string, attr attribute.KeyValue) int64 {
	t.Helper()
	var now metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &now); err != nil {
		t.Fatal(err)
	}
	for _, scope := range now.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				if value, ok := p.Attributes.Value(attr.Key); ok && value == attr.Value {
					return p.Value
				}
			}
		}
	}
	return 0
}

// TestCostOfViewer: a viewer costs the two goroutines of its net/http connection and little
// memory, whatever it was shown. After it disconnects nothing of it stays.
func TestCostOfViewer(t *testing.T) {
	const viewers, slack, most = 300, 10, 50 << 10
	node := setup(t)
	steady, s := node.startViewedRun(node.captureOutputs(), "r1")
	for i := range 20 {
		s.say(fmt.Sprint(i, strings.Repeat("x", 3<<10)))
	}
	s.say("first")
	steady.until("first")
	goroutines, memory := runtime.NumGoroutine(), heapBytes()
	var conns []net.Conn
	for range viewers {
		conn := bareViewer(t, node.http.URL, eventsOfR1)
		if err := readUntil(conn, `"first"`); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	more := runtime.NumGoroutine() - goroutines
	if more > 2*viewers+slack {
		t.Errorf("number of goroutines of %d viewers = %v, want at most %v", viewers, more, 2*viewers+slack)
	}
	each := (heapBytes() - memory) / viewers
	t.Logf("%d bytes for each viewer", each)
	if each > most {
		t.Errorf("memory of a viewer: got %d bytes, want at most %d", each, most)
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx := node.ctx()
	for tick := time.NewTicker(5 * time.Millisecond); runtime.NumGoroutine() > goroutines+slack; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("number of goroutines without viewers = %d, want at most %d", runtime.NumGoroutine(), goroutines)
		}
	}
	s.say("last")
	steady.until("last")
}

// heapBytes returns the bytes of the process's heap and stacks, without garbage.
func heapBytes() int64 {
	for range 3 { // pools release their content in the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far from the bound
}

// readUntil reads up to a text.
func readUntil(conn net.Conn, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return nil
		}
	}
	return errors.Join(lines.Err(), fmt.Errorf("no %q", text))
}
