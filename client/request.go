package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// maxResponseBytes bounds a response that is not a stream, and a frame of a stream, in bytes.
const maxResponseBytes = 64 << 20

// uploadTimeout is the least time in which the server must take a byte of a file, or answer after the last
// one. The answer follows when the file is scanned and stored.
const uploadTimeout = 2 * time.Minute

// request is an HTTP request. One without a file can be sent several times.
type request struct {
	method string
	path   string // escaped
	query  url.Values
	header map[string]string
	body   []byte
	// file is sent instead of body; nil = body is. It is not closed.
	file io.Reader
	size int64 // of file, in bytes; 0 = unknown
}

const jsonType = "application/json"

// get returns a GET request for JSON.
func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query, header: map[string]string{"Accept": jsonType}}
}

// post returns a POST request with a JSON body; a nil body = none.
func post(path string, body any) (request, error) {
	r := request{method: http.MethodPost, path: path, header: map[string]string{"Accept": jsonType}}
	if body == nil {
		return r, nil
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return request{}, fmt.Errorf("client: %w", err)
	}
	r.header["Content-Type"], r.body = jsonType, encoded
	return r, nil
}

// open sends a request once, and returns when the headers of the response have arrived. A response
// with an error status is a *Problem. The caller closes the connection.
func (c *Client) open(ctx context.Context, r request) (*connection, error) {
	idleTimeout := c.config.IdleTimeout
	if r.file != nil {
		idleTimeout = max(idleTimeout, uploadTimeout)
	}
	conn := newConnection(ctx, idleTimeout)
	resp, err := c.do(conn, r) //nolint:bodyclose // the connection closes it
	if err != nil {
		err = conn.cause(err) // before close, which sets a cause as well
		conn.close()
		return nil, err
	}
	c.hasReached.Store(true)
	conn.adopt(resp)
	if resp.StatusCode < 300 {
		return conn, nil
	}
	defer conn.close()
	body, err := conn.all()
	if err != nil {
		return nil, err
	}
	return nil, problemOf(resp, body)
}

// do sends a request with the client's headers and token.
func (c *Client) do(conn *connection, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(conn.ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.file != nil {
		req.Body, req.ContentLength, req.GetBody = sentFile{conn, r.file}, r.size, nil
	}
	if section, ok := r.file.(*io.SectionReader); ok { // for a redirect, or a connection that the server has closed
		req.GetBody = func() (io.ReadCloser, error) { return sentFile{conn, io.NewSectionReader(section.Outer())}, nil }
	}
	c.prepare(req, r.header)
	return c.config.HTTP.Do(req)
}

// prepare adds the client's headers and token to a request, and further headers that are not empty.
func (c *Client) prepare(req *http.Request, header map[string]string) {
	for name, values := range c.config.Header {
		req.Header[name] = values
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
}

// send sends a request until there is a response other than a temporary failure, and returns the
// body.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	pace := c.pace()
	for {
		body, err := c.try(ctx, r)
		if err == nil {
			return body, nil
		}
		if err = pace.waitBeforeRetry(ctx, err); err != nil {
			return nil, err
		}
	}
}

// sendOnce sends a request that must not be repeated, because it is not idempotent. A failure
// without a response is an UnreachableError.
func (c *Client) sendOnce(ctx context.Context, r request) error {
	_, err := c.try(ctx, r)
	var refused *Problem
	switch {
	case err == nil || errors.As(err, &refused):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &UnreachableError{URL: c.base, Err: err}
}

// try sends a request once, and returns the body.
func (c *Client) try(ctx context.Context, r request) ([]byte, error) {
	conn, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	return conn.all()
}

// document sends a request and decodes the response. For a response without a body the value is
// zero.
func document[T any](ctx context.Context, c *Client, r request) (d Document[T], err error) {
	body, err := c.send(ctx, r)
	if err != nil {
		return d, err
	}
	d.JSON = body
	if len(body) > 0 {
		err = decode(body, &d.Value)
	}
	return d, err
}

// decode decodes a response.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("client: the answer is not valid: %w", err)
	}
	return nil
}

// errIdle is the error of a connection that has made no progress for its idleTimeout. The server sends
// heartbeats in streams, so the connection is probably broken.
var errIdle = errors.New("received neither data nor a heartbeat from the server")

// connection is one request with its response. It ends with its context, and if the server neither takes
// a byte of the request nor sends one of the response for idleTimeout. It is used by one goroutine.
type connection struct {
	ctx         context.Context
	cancel      context.CancelCauseFunc
	idleTimeout time.Duration
	timer       *time.Timer // runs until the headers have arrived, and then during each Read
	resp        *http.Response
}

// newConnection returns a connection before the response. The time until the headers arrive counts
// as silence. The caller must call close.
func newConnection(ctx context.Context, idleTimeout time.Duration) *connection {
	ctx, cancel := context.WithCancelCause(ctx)
	return &connection{ctx: ctx, cancel: cancel, idleTimeout: idleTimeout, timer: time.AfterFunc(idleTimeout, func() { cancel(errIdle) })}
}

// adopt sets the response, and stops the timer.
func (c *connection) adopt(resp *http.Response) {
	c.resp = resp
	c.timer.Stop()
}

// Read implements io.Reader over the body. The time between two reads, in which the caller uses the data, is
// not silence of the server.
func (c *connection) Read(p []byte) (int, error) {
	c.timer.Reset(c.idleTimeout)
	defer c.timer.Stop()
	n, err := c.resp.Body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.cause(err)
	}
	return n, err
}

// cause returns the reason why the connection has ended: the cause of its context, if there is one,
// else err.
func (c *connection) cause(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

// all reads the whole body. Errors: *TooLargeError.
func (c *connection) all() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(c, maxResponseBytes+1))
	if err == nil && len(body) > maxResponseBytes {
		err = &TooLargeError{maxResponseBytes}
	}
	return body, err
}

// close ends the connection and its timer.
func (c *connection) close() {
	c.timer.Stop()
	if c.resp != nil {
		_ = c.resp.Body.Close()
	}
	c.cancel(nil)
}

// sentFile is a file as the body of a request. The transport reads it in a goroutine of its own, and asks for
// more when the server has taken what it has.
type sentFile struct {
	conn *connection
	file io.Reader
}

// Read implements io.Reader. It restarts the timer of the connection, which does not run while the file blocks.
func (f sentFile) Read(p []byte) (int, error) {
	f.conn.timer.Stop()
	defer f.conn.timer.Reset(f.conn.idleTimeout)
	return f.file.Read(p)
}

// Close implements io.Closer. It does nothing: the caller owns the file.
func (f sentFile) Close() error { return nil }
