// Package socket is a WebSocket (RFC 6455) as a server holds it: text messages in and out, pings,
// deadlines, and an end that the other side is told about. It knows nothing of what is said.
//
//	Read ◄── one reader        Write ◄── any number of writers, a message at a time
//	 │ pongs push its deadline  │ a client that takes no bytes for Patience is cut, or less than live.MinRate
//	 ▼                          ▼
//	the connection: closed by Close (with a code), or cut (without: nobody takes one any more)
//
// Rules:
//   - Every wait has a bound: a writer's is Patience for each piece of a message, a reader's is Heartbeat and Patience between messages
//     and MessageTime within one, that of the closing handshake is a second.
//   - Only the reader learns how a socket ended; writers fail, and may forget about it.
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

// Codes with which a socket is closed.
const (
	Normal      = websocket.CloseNormalClosure
	GoingAway   = websocket.CloseGoingAway
	Unsupported = websocket.CloseUnsupportedData
	Abnormal    = websocket.CloseAbnormalClosure // never sent: the connection ended without a code
	NotText     = websocket.CloseInvalidFramePayloadData
	Policy      = websocket.ClosePolicyViolation
	TooLarge    = websocket.CloseMessageTooBig
	// Unauthorized is registered with IANA, for applications.
	Unauthorized = 3000
)

// Options say how a socket behaves.
type Options struct {
	// Subprotocol is chosen if the client offers it.
	Subprotocol string
	// MaxMessage bounds what a client may send at once, in bytes.
	MaxMessage int64
	// MessageTime is how long a message may take from its first byte to its last.
	MessageTime time.Duration
	// Heartbeat is the pause between pings; Ping is for the caller to call.
	Heartbeat time.Duration
	// Patience is how long a client may take no bytes, and how long it may take to answer a ping.
	Patience time.Duration
}

// Conn is an open socket.
type Conn struct {
	ws      *websocket.Conn
	options Options
	writing sync.Mutex
	meter   live.Meter  // guarded by writing
	unasked atomic.Bool // a ping was left out: the write that is under way shows whether the client lives
	reading sync.Mutex  // guards the deadline of the reader
	within  bool        // a message is being read; guarded by reading
	closing sync.Once
	cutter  *time.Timer
	code    int
}

// HandshakeError: the request cannot become a socket. It is still to be answered.
type HandshakeError struct{ Reason string }

func (e *HandshakeError) Error() string { return "socket: handshake: " + e.Reason }

// buffers are shared: most sockets are silent most of the time.
var buffers sync.Pool

// Upgrade turns a request into a socket. Close and Wait must be called. Who may call is the
// caller's to check, by the Origin header too.
func Upgrade(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	var refused *HandshakeError
	upgrader := websocket.Upgrader{
		WriteBufferPool: &buffers,
		CheckOrigin:     func(*http.Request) bool { return true },
		Subprotocols:    []string{o.Subprotocol},
		Error: func(_ http.ResponseWriter, _ *http.Request, _ int, reason error) {
			refused = &HandshakeError{Reason: reason.Error()}
		},
		HandshakeTimeout: o.Patience,
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("socket: handshake: %w", err)
	}
	c := &Conn{ws: ws, options: o, code: Abnormal, meter: live.NewMeter(o.Patience)}
	ws.SetReadLimit(o.MaxMessage)
	ws.SetPongHandler(func(string) error { return c.alive() })
	ws.SetPingHandler(c.pong)
	return c, nil
}

// Read returns the next message. Every error is final: the socket is to be closed with CodeOf it.
// One goroutine reads.
func (c *Conn) Read() ([]byte, error) {
	if err := c.alive(); err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	if kind != websocket.TextMessage {
		return nil, errBinary
	}
	message, err := c.readAll(r)
	if err != nil {
		return nil, fmt.Errorf("socket: read: %w", err)
	}
	if !utf8.Valid(message) {
		return nil, errNotText
	}
	return message, nil
}

// readAll reads the rest of a message. Pings in between show that the client lives and give it no
// more time: half a message takes as much memory as a whole one.
func (c *Conn) readAll(r io.Reader) ([]byte, error) {
	if err := c.setWithin(true); err != nil {
		return nil, err
	}
	defer func() { _ = c.setWithin(false) }()
	return io.ReadAll(r)
}

// setWithin notes whether a message is being read. One that begins has its own deadline.
func (c *Conn) setWithin(within bool) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.within = within
	if !within {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(c.options.MessageTime))
}

var (
	errBinary  = errors.New("socket: binary messages mean nothing here")
	errNotText = errors.New("socket: the message is not UTF-8")
)

// firstOwn is the first of the codes that mean something to applications only.
const firstOwn = 3000

// CodeOf returns the code with which to close a socket whose reader failed: the client's, if it
// closed.
func CodeOf(err error) int {
	var (
		closed  *websocket.CloseError
		timeout interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &closed) && closed.Code >= firstOwn:
		return Normal
	case errors.As(err, &closed):
		return closed.Code
	case errors.Is(err, errBinary):
		return Unsupported
	case errors.Is(err, errNotText):
		return NotText
	case errors.Is(err, websocket.ErrReadLimit):
		return TooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		return Policy
	}
	return Abnormal
}

// alive moves the reader's deadline: a client that answers pings, or takes what it is sent, may say
// nothing for as long as it likes.
func (c *Conn) alive() error {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.within {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(c.options.Heartbeat + c.options.Patience))
}

// pong answers a client's ping.
func (c *Conn) pong(data string) error {
	c.control(websocket.PongMessage, []byte(data))
	return c.alive()
}

// Ping asks the client to show that it lives. It may be called concurrently with everything else.
// While a message is being written, that message asks: a ping would wait for it, and the answer
// with it.
func (c *Conn) Ping() {
	if !c.writing.TryLock() {
		c.unasked.Store(true)
		return
	}
	defer c.writing.Unlock()
	c.control(websocket.PingMessage, nil)
}

func (c *Conn) control(kind int, data []byte) {
	err := c.ws.WriteControl(kind, data, time.Now().Add(c.options.Patience))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.cut()
	}
}

// Write sends a message. A client that is too slow is cut: it takes no bytes for Patience, or less
// than live.MinRate; the error is live.ErrSlow then. So nobody waits for ever for the writers
// before him either.
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

// write sends a large message in fragments, so that each has its own deadline.
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

// blocked is how long a write takes at least that had to wait for the client.
const blocked = 10 * time.Millisecond

// timed writes with a deadline.
func (c *Conn) timed(bytes int, write func() error) error {
	begun := time.Now()
	if err := c.ws.SetWriteDeadline(begun.Add(c.options.Patience)); err != nil {
		return err
	}
	err := write()
	waited := time.Since(begun)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: it took no bytes for %s", live.ErrSlow, c.options.Patience)
	case err != nil:
		return err
	case c.meter.Slow(bytes, waited):
		return fmt.Errorf("%w: it takes less than %d bytes per second", live.ErrSlow, live.MinRate)
	case waited < blocked && !c.unasked.Swap(false):
		return nil
	}
	return c.alive() // its answer to a ping may be behind all that it has still to read
}

// cut ends the connection at once. Half a message may be out, so that no code could follow.
func (c *Conn) cut() { _ = c.ws.NetConn().Close() }

// closePatience is how long the other side may take to close.
const closePatience = time.Second

// Close tells the client that the socket ends, and why, and lets it answer for a second; the reader
// fails by then. Only the first call counts. It may be called concurrently with everything else.
func (c *Conn) Close(code int, reason string) {
	c.closing.Do(func() {
		c.code = code
		c.cutter = time.AfterFunc(closePatience, c.cut)
		if code != Abnormal {
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(closePatience))
		}
		if half, ok := c.ws.NetConn().(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
}

// Wait waits for the client to close its side, since closing on bytes that it sent would reset the
// connection before it has read the code, and returns the code that the socket ended with. It is
// called by the reader, after Close.
func (c *Conn) Wait() int {
	_, _ = io.Copy(io.Discard, c.ws.NetConn())
	c.cutter.Stop()
	c.cut()
	return c.code
}
