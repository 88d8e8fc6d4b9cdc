package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// target is the endpoint of runs, with the format of its responses.
type target struct {
	base    string // URL without a path
	path    func(p pace) string
	body    func(p pace, id string) []byte
	dialect dialect
	// tenant is the tenant of the caller, for a system that takes it from the header X-Tenant; "" =
	// none.
	tenant string
}

// request returns the whole HTTP request for a run, on a connection that is kept alive or is closed
// after the request.
func (t target) request(p pace, id, connection string) []byte {
	body, caller := t.body(p, id), ""
	if t.tenant != "" {
		caller = fmt.Sprintf("X-Tenant: %s\r\nX-Forwarded-User: bench\r\n", t.tenant)
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n%sContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
		t.path(p), connection, caller, len(body), body)
}

// connection is one keep-alive connection. It is used by one goroutine, which reads the socket
// itself: net/http's client has two more goroutines per connection, and their cost would count as
// latency of the system.
type connection struct {
	target target
	conn   net.Conn
	head   *bufio.Reader
	lines  *bufio.Reader
	stop   func() bool
}

// lineBytes bounds a line of a stream.
const lineBytes = 64 << 10

// patience bounds the duration of one run.
const patience = 5 * time.Minute

// dial connects to a target. The caller closes the connection, which also ends with ctx.
func dial(ctx context.Context, t target) (*connection, error) {
	u, err := url.Parse(t.base)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &connection{
		target: t, conn: conn,
		head: bufio.NewReaderSize(conn, lineBytes), lines: bufio.NewReaderSize(nil, lineBytes),
		stop: context.AfterFunc(ctx, func() { _ = conn.Close() }),
	}, nil
}

func (c *connection) close() {
	c.stop()
	_ = c.conn.Close()
}

// run executes one run and adds its timings to the sample.
func (c *connection) run(p pace, id string, s *sample) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	sc := scan{dialect: c.target.dialect, wanted: speeches[p].tokens, sample: s, started: micros()}
	if _, err := c.conn.Write(c.target.request(p, id, "keep-alive")); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.head, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("%w: %s: %s", errRun, response.Status, text)
	}
	c.lines.Reset(response.Body)
	return sc.read(c.lines)
}
