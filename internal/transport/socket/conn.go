// Package socket is the server's side of a WebSocket (RFC 6455): text messages, pings, deadlines,
// and a closing handshake. It does not interpret messages.
//
//	Read ◄── one reader        Write ◄── any number of writers, one message at a time
//	 │ pongs move its deadline  │ a client that takes no bytes for WriteTimeout is cut,
//	 ▼                          ▼ or one that takes less than live.MinRate
//	the connection: closed by Close (with a code), or cut (without: none can be sent any more)
//
// Rules:
//   - Every wait has a bound. A writer waits for WriteTimeout per piece of a message. A reader waits
//     for Heartbeat and WriteTimeout between messages, and for MessageTime within one. The closing
//     handshake takes a second.
//   - Only the reader learns how a socket ended. Writers get an error, and need not act on it.
package socket

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/internal/transport/live"
)

// Close codes of RFC 6455, section 7.4.1.
const (
	Normal      = websocket.CloseNormalClosure
	GoingAway   = websocket.CloseGoingAway
	Unsupported = websocket.CloseUnsupportedData
	Abnormal    = websocket.CloseAbnormalClosure // never sent: the connection ended without a code
	NotText     = websocket.CloseInvalidFramePayloadData
	Policy      = websocket.ClosePolicyViolation
	TooLarge    = websocket.CloseMessageTooBig
	TryLater    = websocket.CloseTryAgainLater // of IANA's registry of close codes
	// Unauthorized is of IANA's registry of close codes.
	Unauthorized = 3000
)

// Options configures a socket.
type Options struct {
	// Subprotocol is selected if the client offers it.
	Subprotocol string
	// MaxMessage bounds a message of the client, in bytes.
	MaxMessage int64
	// MessageTime bounds the time from the first to the last byte of a message.
	MessageTime time.Duration
	// Heartbeat is the interval at which the caller calls Ping.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take no bytes, and how long it may take to answer a
	// ping.
	WriteTimeout time.Duration
}

// Conn is an open WebSocket. One goroutine calls Read and, at the end, Close and Wait. Write, Ping
// and Close may be called concurrently with it. Conn starts no goroutine.
type Conn struct {
	ws             *websocket.Conn
	options        Options
	writing        sync.Mutex
	meter          live.Meter  // guarded by writing
	pingSkipped    atomic.Bool // Ping has sent no ping because a write was in progress; its end shows that the client lives
	reading        sync.Mutex  // guards the reader's deadline
	readingMessage bool        // a message is being read; guarded by reading
	closing        sync.Once
	cutter         *time.Timer // set by Close
	code           int         // of Close; Abnormal before
}

// HandshakeError reports that a request cannot become a WebSocket. The caller still has to answer
// the request.
type HandshakeError struct{ Reason string }

func (e *HandshakeError) Error() string { return "socket: handshake: " + e.Reason }

// buffers are the write buffers of all sockets: most sockets are idle most of the time.
var buffers sync.Pool

// Upgrade makes a WebSocket of a request. The caller has checked the origin and the principal
// before. The caller must call Close and then Wait. Errors: *HandshakeError, if no response was
// sent.
func Upgrade(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	var refused *HandshakeError
	upgrader := websocket.Upgrader{
		WriteBufferPool: &buffers,
		CheckOrigin:     func(*http.Request) bool { return true },
		Subprotocols:    []string{o.Subprotocol},
		Error: func(_ http.ResponseWriter, _ *http.Request, _ int, reason error) {
			refused = &HandshakeError{Reason: reason.Error()}
		},
		HandshakeTimeout: o.WriteTimeout,
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("socket: handshake: %w", err)
	}
	c := &Conn{ws: ws, options: o, code: Abnormal, meter: live.NewMeter(o.WriteTimeout)}
	ws.SetReadLimit(o.MaxMessage)
	ws.SetPongHandler(func(string) error { return c.extendReadDeadline() })
	ws.SetPingHandler(c.pong)
	return c, nil
}

// Read returns the next message. While it reads, it calls grow with the number of bytes that it has
// read so far; an error of grow ends the message. Every error is final: the caller closes the socket
// with CodeOf the error. Only one goroutine may call Read.
func (c *Conn) Read(grow func(bytes int) error) ([]byte, error) {
	if err := c.extendReadDeadline(); err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	if kind != websocket.TextMessage {
		return nil, errBinary
	}
	message, err := c.readAll(&countedReader{Reader: r, grow: grow})
	if err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	if !utf8.Valid(message) {
		return nil, errNotText
	}
	return message, nil
}

// readAll reads the rest of a message within MessageTime. A pong does not extend that time: an
// incomplete message occupies memory like a complete one.
func (c *Conn) readAll(r io.Reader) ([]byte, error) {
	if err := c.setReadingMessage(true); err != nil {
		return nil, err
	}
	defer func() { _ = c.setReadingMessage(false) }()
	return io.ReadAll(r)
}

// countedReader calls grow with the number of bytes that it has read.
type countedReader struct {
	io.Reader
	grow func(bytes int) error
	read int
}

// Read implements io.Reader.
func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += n
	if full := r.grow(r.read); full != nil {
		return n, fmt.Errorf("%w: %w", errNoMemory, full)
	}
	return n, err
}

// setReadingMessage records whether a message is being read. At its beginning it sets the deadline
// of the message.
func (c *Conn) setReadingMessage(reading bool) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.readingMessage = reading
	if !reading {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(c.options.MessageTime))
}

var (
	errBinary  = errors.New("socket: binary messages mean nothing here")
	errNotText = errors.New("socket: the message is not UTF-8")
	// errNoMemory wraps the error of grow. A part of the message cannot be answered.
	errNoMemory = errors.New("socket: no memory for the message")
)

// firstApplicationCode is the first of the close codes for libraries and applications (RFC 6455,
// section 7.4.2).
const firstApplicationCode = 3000

// CodeOf returns the code with which to close a socket whose Read has failed. It is the client's
// own code if the client has closed; Normal for a code of an application; Abnormal if no code can
// be sent.
func CodeOf(err error) int {
	var (
		closeErr *websocket.CloseError
		timeout  interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &closeErr) && closeErr.Code >= firstApplicationCode:
		return Normal
	case errors.As(err, &closeErr):
		return closeErr.Code
	case errors.Is(err, errBinary):
		return Unsupported
	case errors.Is(err, errNotText):
		return NotText
	case errors.Is(err, errNoMemory):
		return TryLater
	case errors.Is(err, websocket.ErrReadLimit):
		return TooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		return Policy
	}
	return Abnormal
}

// extendReadDeadline moves the reader's deadline. A client that answers pings, or takes data, may
// send nothing for any time.
func (c *Conn) extendReadDeadline() error {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.readingMessage {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(c.options.Heartbeat + c.options.WriteTimeout))
}

// pong answers a ping of the client.
func (c *Conn) pong(data string) error {
	c.control(websocket.PongMessage, []byte(data))
	return c.extendReadDeadline()
}

// Ping sends a ping, whose pong moves the reader's deadline. It may be called concurrently with all
// other methods, and does not wait for a write in progress. If there is one, the end of that write
// shows that the client lives.
func (c *Conn) Ping() {
	if !c.writing.TryLock() {
		c.pingSkipped.Store(true)
		return
	}
	defer c.writing.Unlock()
	c.control(websocket.PingMessage, nil)
}

// control sends a control frame, and cuts the connection if that fails.
func (c *Conn) control(kind int, data []byte) {
	err := c.ws.WriteControl(kind, data, time.Now().Add(c.options.WriteTimeout))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.cut()
	}
}

// Write sends a message. It blocks for other writers and for the client, whose slowness is bounded:
// a client that takes no bytes for WriteTimeout, or less than live.MinRate, is cut, and Write fails
// with live.ErrSlow. So every writer in the queue returns.
func (c *Conn) Write(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.write(message); err != nil {
		if !errors.Is(err, websocket.ErrCloseSent) {
			c.cut()
		}
		return fmt.Errorf("socket: write: %w", err)
	}
	return nil
}

// write sends a large message in fragments, so that each has its own deadline. The caller holds
// writing.
func (c *Conn) write(message []byte) error {
	if len(message) <= live.PieceBytes {
		return c.timed(len(message), func() error { return c.ws.WriteMessage(websocket.TextMessage, message) })
	}
	w, err := c.ws.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for len(message) > 0 {
		piece := message[:min(len(message), live.PieceBytes)]
		message = message[len(piece):]
		if err := c.timed(len(piece), func() error { _, err := w.Write(piece); return err }); err != nil {
			return err
		}
	}
	return c.timed(0, w.Close)
}

// minWait is the duration from which a write counts as one that has waited for the client.
const minWait = 10 * time.Millisecond

// timed executes one write of some bytes with a deadline, and measures it.
func (c *Conn) timed(bytes int, write func() error) error {
	start := time.Now()
	if err := c.ws.SetWriteDeadline(start.Add(c.options.WriteTimeout)); err != nil {
		return err
	}
	err := write()
	waited := time.Since(start)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: it took no bytes for %s", live.ErrSlow, c.options.WriteTimeout)
	case err != nil:
		return err
	case c.meter.Slow(bytes, waited):
		return fmt.Errorf("%w: it takes less than %d bytes per second", live.ErrSlow, live.MinRate)
	case waited < minWait && !c.pingSkipped.Swap(false):
		return nil
	}
	return c.extendReadDeadline() // the client lives; its pong may be queued after the data that it has yet to read
}

// cut closes the connection without a close frame: part of a message may be sent, so none could
// follow.
func (c *Conn) cut() { _ = c.ws.NetConn().Close() }

// closeTimeout bounds how long the client may take for the closing handshake.
const closeTimeout = time.Second

// Close sends a close frame with the code and the reason, unless code is Abnormal, and closes the
// sending side. If the client does not close within closeTimeout, the connection is cut; then Read
// fails. Only the first call has an effect. It may be called concurrently with all other methods,
// and does not wait.
func (c *Conn) Close(code int, reason string) {
	c.closing.Do(func() {
		c.code = code
		c.cutter = time.AfterFunc(closeTimeout, c.cut)
		if code != Abnormal {
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(closeTimeout))
		}
		if half, ok := c.ws.NetConn().(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
}

// Wait reads and discards until the client closes its side or the connection is cut, and returns
// the code of Close. A connection that is closed with unread data would be reset, and the client
// might not read the code. The reader calls Wait after Close.
func (c *Conn) Wait() int {
	_, _ = io.Copy(io.Discard, c.ws.NetConn())
	c.cutter.Stop()
	c.cut()
	return c.code
}
