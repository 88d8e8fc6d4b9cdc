package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/api"
)

// large are requests with answers that are far larger than the buffers of a narrow connection.
var large = []string{
	"/v1/threads/t/messages", "/v1/threads/t/events?follow=false&limit=500", "/v1/threads/t/runs/r1/events?limit=500",
}

// setupLargeThread returns a node with a thread of one message of 3 MiB.
func setupLargeThread(t *testing.T) *node {
	t.Helper()
	node := setup(t)
	steady, s := node.startViewedRun(node.captureOutputs(), "r1")
	text := strings.Repeat("x", 32<<10)
	for range 100 {
		s.say(text)
		steady.until(text)
	}
	s.end()
	steady.until("RUN_FINISHED")
	return node
}

// sendUnread sends a request and reads only the first byte of its answer.
func sendUnread(t *testing.T, base, path string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\nAccept: application/json\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// statusAt reads a whole answer and returns its status.
func statusAt(t *testing.T, method, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// roomForLarge is twice about the bytes that the answers to all large requests take at once: a
// tenant leaves half of them to others.
const roomForLarge = 48 << 20

// TestClientThatDoesNotReadIsDisconnected: a client that does not read its answer is disconnected,
// whatever the answer is. Then its answer occupies no room on the node.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	t.Parallel()
	node := setupLargeThread(t)
	disconnected := make(chan struct{}, len(large))
	front := node.serveOn(t, func(l net.Listener) net.Listener {
		return &smallBufferListener{Listener: l, disconnected: disconnected}
	}, withShortWriteTimeout, func(c *api.Config) { c.MaxAnswerBytes = roomForLarge })
	for range 2 {
		for _, path := range large {
			sendUnread(t, front, path)
		}
		for range large {
			select {
			case <-disconnected:
			case <-node.ctx().Done():
				t.Fatal("a client that does not read is not disconnected")
			}
		}
	}
}

// TestSlowReaderGetsWholeAnswer: a client that reads slowly but steadily gets its whole answer,
// although that takes several times the write timeout.
func TestSlowReaderGetsWholeAnswer(t *testing.T) {
	t.Parallel()
	node := setupLargeThread(t)
	front := node.serveOn(t, withSmallBuffers, withShortWriteTimeout)
	conn := sendUnread(t, front, large[0])
	if err := conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	pause := time.NewTicker(40 * time.Millisecond)
	defer pause.Stop()
	slow := readerFunc(func(p []byte) (int, error) {
		<-pause.C
		return conn.Read(p[:min(len(p), 64<<10)])
	})
	resp, err := http.ReadResponse(bufio.NewReaderSize(io.MultiReader(strings.NewReader("H"), slow), 64<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(body) < 100*32<<10 {
		t.Errorf("body = %d bytes, %v, want at least %d", len(body), err, 100*32<<10)
	}
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("the client took %s, want at least twice the write timeout", took)
	}
}

// readerFunc is an io.Reader.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestUnreadAnswersHaveBoundedMemory: a tenant whose unread answers have its share of the node's
// memory gets no further large answer, and still gets small ones.
func TestUnreadAnswersHaveBoundedMemory(t *testing.T) {
	t.Parallel()
	node := setupLargeThread(t)
	front := node.serveOn(t, withSmallBuffers, func(c *api.Config) { c.MaxAnswerBytes = roomForLarge })
	var conns []net.Conn
	for _, path := range large {
		conns = append(conns, sendUnread(t, front, path))
	}
	for _, path := range large {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d with %v, want %d with Retry-After", path, resp.StatusCode, resp.Header, http.StatusTooManyRequests)
		}
	}
	for _, path := range []string{"/v1/threads/t", "/v1/threads/t/state", "/v1/agents"} {
		if status := statusAt(t, http.MethodGet, front+path); status != http.StatusOK {
			t.Errorf("%s: status = %d, want %d", path, status, http.StatusOK)
		}
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, func() bool { return statusAt(t, http.MethodGet, front+large[0]) == http.StatusOK })
}

// TestUnreadAnswersCountAsStreams: an answer counts as a stream of its node until the client has
// read it. A full node still accepts commands and probes.
func TestUnreadAnswersCountAsStreams(t *testing.T) {
	t.Parallel()
	node := setupLargeThread(t)
	front := node.serveOn(t, func(l net.Listener) net.Listener {
		return &smallBufferListener{Listener: l, disconnected: make(chan struct{}, 100)}
	},
		func(c *api.Config) { c.MaxStreams = len(large) })
	var conns []net.Conn
	for _, path := range large {
		conns = append(conns, sendUnread(t, front, path))
	}
	for _, path := range []string{"/v1/threads/t", "/v1/threads/t/messages", "/v1/threads/t/state", "/v1/threads/t/runs", "/v1/threads/t/events", "/v1/agents", "/openapi.json"} {
		if status := statusAt(t, http.MethodGet, front+path); status != http.StatusServiceUnavailable {
			t.Errorf("%s: status = %v, want %v", path, status, http.StatusServiceUnavailable)
		}
	}
	if status := statusAt(t, http.MethodPost, front+"/v1/threads/t/runs/r1/cancel"); status == http.StatusServiceUnavailable {
		t.Errorf("cancel at a full node: status = %d, want another", status)
	}
	if status := statusAt(t, http.MethodGet, front+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: status = %v, want %v", status, http.StatusOK)
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, func() bool { return statusAt(t, http.MethodGet, front+"/v1/threads/t") == http.StatusOK })
}

// TestUnreadStreamsHaveBoundedMemory: a stream whose client does not read a large event takes
// memory of its tenant's share. Without memory another stream gets 429, and on a WebSocket an error
// frame in place of the acknowledgement: it must not hold events until the client reads that.
func TestUnreadStreamsHaveBoundedMemory(t *testing.T) {
	t.Parallel()
	node := setupLargeThread(t)
	front := node.serveOn(t, withSmallBuffers, func(c *api.Config) { c.MaxAnswerBytes = 8 << 20 })
	const path = "/v1/threads/t/runs/r1/events?join=true"
	status := func() int { return statusAt(t, http.MethodGet, front+path) }
	wantEqual(t, "status of the only stream", status(), http.StatusOK)
	unread, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	if _, err := fmt.Fprintf(unread, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	if _, err := unread.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "status of a second stream", status(), http.StatusTooManyRequests)
	c := node.dialAt(wsURL(front))
	c.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t", "runId": "r1", "join": true})
	wantEqual(t, "code of a stream of a WebSocket", c.next().Code, "quota_exceeded")
	if err := unread.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return status() == http.StatusOK })
}
