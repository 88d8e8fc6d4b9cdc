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

// narrowly accepts connections that hold little.
func narrowly(l net.Listener) net.Listener {
	return &narrow{Listener: l, given: make(chan struct{}, 1000)}
}

// lagging is a viewer on a connection of its own, which reads when it is told to.
type lagging struct {
	conn net.Conn
	read bytes.Buffer
}

func newLagging(t *testing.T, base, path string, header ...string) *lagging {
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
	return &lagging{conn: conn}
}

// take reads some bytes, which the server has had to send for a while.
func (l *lagging) take(n int64) error {
	_, err := io.CopyN(&l.read, l.conn, n)
	return err
}

// skip is take for bytes that nobody wants.
func (l *lagging) skip(n int64) error {
	_, err := io.CopyN(io.Discard, l.conn, n)
	return err
}

// rest reads to the end, and returns the whole body.
func (l *lagging) rest() (string, error) {
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

// A run says far more at once than a node keeps of it. Viewers that read, as fast as they can or
// slower than the run speaks, are shown every event once, over every transport; nobody is cut.
func TestViewersThatReadAreNotCut(t *testing.T) {
	t.Parallel()
	const burst, size = 400, 32 << 10 // 12.5 MiB
	n := setup(t)
	steady, s := n.started(n.spoken(), "r1")
	first := cursors(steady.until("TEXT_MESSAGE_START"))[0]
	front := n.behind(t, narrowly)
	paths := map[string][]string{
		"a run":                      {eventsOfR1},
		"a run on the binary wire":   {eventsOfR1, "Accept", protobuf.MediaType},
		"a thread":                   {"/v1/threads/t/events?follow=false&after=" + first},
		"a run behind its first one": {eventsOfR1, "Last-Event-ID", first},
	}
	slow := map[string]*lagging{}
	for name, path := range paths {
		slow[name] = newLagging(t, front, path[0], path[1:]...)
	}
	socket := n.dialAt(wsURL(front))
	socket.send(subscribeFrame("1", "r1", ""))
	socket.want("ack", "1")
	socketLines := []string{socket.want("event", "1").line(), socket.want("event", "1").line()}

	var fast sync.WaitGroup
	for name, path := range paths { // these read as fast as they can
		fast.Go(func() {
			body, err := newLagging(t, front, path[0], path[1:]...).rest()
			if err != nil || len(body) < burst*size {
				t.Errorf("%s: a viewer that reads all the time got %d bytes, %v", name, len(body), err)
			}
		})
	}
	text := strings.Repeat("x", size-8)
	for i := range burst {
		s.say(fmt.Sprintf("%08d%s", i, text))
		for name, viewer := range slow {
			if err := viewer.take(1 << 10); err != nil {
				t.Fatalf("%s: in the %dth of %d: %v", name, i, burst, err)
			}
		}
		if i%10 == 0 { // often enough that a slow machine does not take it for a client that reads nothing
			socketLines = append(socketLines, socket.want("event", "1").line())
		}
	}
	s.end()
	for name, viewer := range slow {
		body, err := viewer.rest()
		if err != nil {
			t.Errorf("%s: %v after %d bytes", name, err, len(body))
			continue
		}
		body = strings.ReplaceAll(body, ": heartbeat\n\n", "") // a slow machine takes longer than a heartbeat's period
		if whole := n.do(http.MethodGet, paths[name][0], "", paths[name][1:]...); body != whole.body {
			t.Errorf("%s: the viewer was shown %d bytes, of a run of %d", name, len(body), len(whole.body))
		}
	}
	_, rest := socket.until("1", "end")
	whole := n.do(http.MethodGet, eventsOfR1, "")
	if diff := cmp.Diff(frames(whole.body), append(socketLines, rest...)); diff != "" {
		t.Errorf("over a socket (-whole +shown): %.2000s", diff)
	}
	fast.Wait()
}

// What a node holds for a viewer that does not read is bounded, however long the run is.
func TestWhatALaggingViewerCosts(t *testing.T) {
	const viewers, most = 240, 256 << 10
	n := setup(t)
	steady, s := n.started(n.spoken(), "r1")
	text := strings.Repeat("x", 32<<10)
	for range 32 { // a past of 1 MiB
		s.say(text)
		steady.until(text)
	}
	front := n.behind(t, narrowly)
	goroutines := runtime.NumGoroutine()
	var all []*lagging
	for range viewers {
		viewer := newLagging(t, front, eventsOfR1)
		all = append(all, viewer)
		if err := viewer.skip(1 << 10); err != nil {
			t.Fatal(err)
		}
	}
	for i := range viewers { // and 8 MiB more, which is more than a node keeps
		s.say(text)
		steady.until(text)
		if err := all[i].skip(512 << 10); err != nil {
			t.Fatal(err)
		}
	}
	with := held()
	for range 10 { // the embedded NATS server holds buffers for a moment, too: the least measurement is that of the viewers
		<-time.After(200 * time.Millisecond)
		with = min(with, held())
	}
	for _, viewer := range all {
		if err := viewer.conn.Close(); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, func() bool { return runtime.NumGoroutine() <= goroutines+10 })
	each := (with - held()) / viewers
	t.Logf("%d bytes for each viewer", each)
	if each > most {
		t.Errorf("a viewer that does not read costs %d bytes, more than %d", each, most)
	}
	s.end()
}
