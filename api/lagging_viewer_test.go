package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui/protobuf"
)

// withSmallBuffers accepts connections with a small send buffer.
func withSmallBuffers(l net.Listener) net.Listener {
	return &smallBufferListener{Listener: l, disconnected: make(chan struct{}, 1000)}
}

// laggingViewer is a viewer on its own connection, which reads only on request.
type laggingViewer struct {
	conn net.Conn
	read bytes.Buffer
}

// dialLagging requests a stream of events, and reads nothing.
func dialLagging(t *testing.T, base, path string, header ...string) *laggingViewer {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := "GET " + path + " HTTP/1.1\r\nHost: test\r\n"
	for i := 0; i < len(header); i += 2 {
		request += header[i] + ": " + header[i+1] + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return &laggingViewer{conn: conn}
}

// readBytes reads n bytes, which the server has to send first.
func (l *laggingViewer) readBytes(n int64) error {
	_, err := io.CopyN(&l.read, l.conn, n)
	return err
}

// skip is take for bytes that the test discards.
func (l *laggingViewer) skip(n int64) error {
	_, err := io.CopyN(io.Discard, l.conn, n)
	return err
}

// rest reads to the end, and returns the whole body.
func (l *laggingViewer) rest() (string, error) {
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(&l.read, l.conn)), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// TestReadingViewersStayConnected: a run emits far more at once than a node keeps of it. Viewers
// that read, at full speed or slower than the run, are shown every event once over every transport.
// No viewer is disconnected.
func TestReadingViewersStayConnected(t *testing.T) {
	t.Parallel()
	const burst, size = 400, 32 << 10 // 12.5 MiB
	node := setup(t)
	steady, s := node.startViewedRun(node.captureOutputs(), "r1")
	first := cursors(steady.until("TEXT_MESSAGE_START"))[0]
	front := node.serveOn(t, withSmallBuffers)
	paths := map[string][]string{
		"a run":                       {eventsOfR1},
		"a run on the binary wire":    {eventsOfR1, "Accept", protobuf.MediaType},
		"a thread":                    {"/v1/threads/t/events?follow=false&after=" + first},
		"a run after its first event": {eventsOfR1, "Last-Event-ID", first},
	}
	slow := map[string]*laggingViewer{}
	for name, path := range paths {
		slow[name] = dialLagging(t, front, path[0], path[1:]...)
	}
	socket := node.dialAt(wsURL(front))
	socket.send(subscribeFrame("1", "r1", ""))
	socket.want("ack", "1")
	socketLines := []string{socket.want("event", "1").line(), socket.want("event", "1").line()}

	var fast sync.WaitGroup
	for name, path := range paths { // these read as fast as they can
		fast.Go(func() {
			body, err := dialLagging(t, front, path[0], path[1:]...).rest()
			if err != nil || len(body) < burst*size {
				t.Errorf("%s: viewer at full speed: got %d bytes, %v, want at least %d", name, len(body), err, burst*size)
			}
		})
	}
	text := strings.Repeat("x", size-8)
	for i := range burst {
		s.say(fmt.Sprintf("%08d%s", i, text))
		for name, viewer := range slow {
			if err := viewer.readBytes(1 << 10); err != nil {
				t.Fatalf("%s: at %d of %d: %v", name, i, burst, err)
			}
		}
		if i%10 == 0 { // often enough that the server of a slow machine does not disconnect it
			socketLines = append(socketLines, socket.want("event", "1").line())
		}
	}
	s.end()
	// All at once: a viewer that waits for its turn to read would be cut after 30 s.
	var bodies sync.Map
	var all sync.WaitGroup
	for name, viewer := range slow {
		all.Go(func() {
			body, err := viewer.rest()
			if err != nil {
				t.Errorf("%s: got %v after %d bytes", name, err, len(body))
			}
			bodies.Store(name, body)
		})
	}
	_, rest := socket.until("1", "end")
	all.Wait()
	for name, path := range paths {
		body, _ := bodies.Load(name)
		shown := strings.ReplaceAll(body.(string), ": heartbeat\n\n", "") // a slow machine may send heartbeats
		if whole := node.do(http.MethodGet, path[0], "", path[1:]...); shown != whole.body {
			t.Errorf("%s: viewer: got %d bytes, want %d", name, len(shown), len(whole.body))
		}
	}
	whole := node.do(http.MethodGet, eventsOfR1, "")
	if diff := cmp.Diff(frames(whole.body), append(socketLines, rest...)); diff != "" {
		t.Errorf("events over a socket (-want +got): %.2000s", diff)
	}
	fast.Wait()
}

// TestMemoryOfLaggingViewerIsBounded: the memory that a node holds for a viewer that does not read
// is bounded, whatever the length of the run.
func TestMemoryOfLaggingViewerIsBounded(t *testing.T) {
	const viewers, most = 240, 256 << 10
	node := setup(t)
	steady, s := node.startViewedRun(node.captureOutputs(), "r1")
	text := strings.Repeat("x", 32<<10)
	for range 32 { // the run has 1 MiB before the viewers connect
		s.say(text)
		steady.until(text)
	}
	front := node.serveOn(t, withSmallBuffers)
	goroutines := runtime.NumGoroutine()
	var all []*laggingViewer
	for range viewers {
		viewer := dialLagging(t, front, eventsOfR1)
		all = append(all, viewer)
		if err := viewer.skip(1 << 10); err != nil {
			t.Fatal(err)
		}
	}
	for i := range viewers { // 8 MiB more, which is more than a node keeps
		s.say(text)
		steady.until(text)
		if err := all[i].skip(512 << 10); err != nil {
			t.Fatal(err)
		}
	}
	with := heapBytes()
	for range 10 { // the embedded NATS server holds buffers for a moment: the smallest measurement counts
		<-time.After(200 * time.Millisecond)
		with = min(with, heapBytes())
	}
	for _, viewer := range all {
		if err := viewer.conn.Close(); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, func() bool { return runtime.NumGoroutine() <= goroutines+10 })
	each := (with - heapBytes()) / viewers
	t.Logf("%d bytes for each viewer", each)
	if each > most {
		t.Errorf("memory of a viewer that does not read: got %d bytes, want at most %d", each, most)
	}
	s.end()
}
