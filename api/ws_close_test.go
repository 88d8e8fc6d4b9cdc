package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
)

// TestInvalidFramesEndSocket: a message that is not a frame ends the socket, with a close code for
// the reason.
func TestInvalidFramesEndSocket(t *testing.T) {
	t.Parallel()
	node := setup(t)
	for _, c := range []struct {
		name     string
		kind     int
		body     string
		wantCode int
	}{
		{"a message too large", websocket.TextMessage, strings.Repeat(" ", 1<<20+1), websocket.CloseMessageTooBig},
		{"a binary message", websocket.BinaryMessage, `{"type":"ping","id":"1"}`, websocket.CloseUnsupportedData},
		{"text that is not UTF-8", websocket.TextMessage, "{\"type\":\"ping\",\"id\":\"\xff\"}", websocket.CloseInvalidFramePayloadData},
		{"a normal close", websocket.CloseMessage, string(websocket.FormatCloseMessage(1000, "")), websocket.CloseNormalClosure},
	} {
		client := node.dial()
		client.ping("1")
		err := client.conn.WriteMessage(c.kind, []byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		client.wantClosed(c.wantCode)
	}
	client := node.dial() // the largest message that is accepted
	ping := `{"type":"ping","id":"1"}`
	client.send(ping + strings.Repeat(" ", 1<<20-len(ping)))
	client.want("ack", "1")
	for range 99 {
		client.send("nonsense")
		client.next()
	}
	client.ping("1") // a valid frame resets the count
	for range 100 {
		client.send("nonsense")
		client.next()
	}
	client.wantClosed(websocket.ClosePolicyViolation)
}

func TestStreamsOfSocketAreBounded(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.MaxSocketRequests = 2 })
	outputs := node.captureOutputs()
	c := node.dial()
	var active []*agentOutput
	for i := range 2 {
		id := fmt.Sprint("r", i)
		in := inputOf(id, "hello")
		in.ThreadID = id
		c.send(runFrame(id, in))
		c.want("ack", id)
		active = append(active, outputs.next(node))
		c.want("event", id)
		c.want("event", id)
	}
	c.send(subscribeFrame("3", "r0", ""))
	f := c.want("error", "3")
	wantEqual(t, "code of the frame", f.Code, "too_many_streams")
	wantEqual(t, "status of the frame", f.Status, http.StatusTooManyRequests)
	c.ping("3")
	active[0].end()
	c.until("r0", "end")
	c.send(map[string]any{"type": "subscribe", "id": "3", "threadId": "r0", "runId": "r0"})
	c.want("ack", "3")
	c.until("3", "end")
	active[1].end()
}

// TestPings: a client that answers pings may be silent. A client that does not is disconnected.
func TestPings(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat, c.WriteTimeout = 20*time.Millisecond, time.Second })
	alive, dead := node.dial(), node.dial()
	pings := 0
	alive.conn.SetPingHandler(func(data string) error {
		if pings++; pings == 60 { // for longer than a client may be silent without pongs
			alive.send(`{"type":"ping","id":"1"}`)
		}
		return alive.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Minute))
	})
	dead.conn.SetPingHandler(func(string) error { return nil })
	alive.want("ack", "1")
	dead.wantClosed(websocket.ClosePolicyViolation)

	pong := make(chan string, 1)
	alive.conn.SetPongHandler(func(data string) error { pong <- data; alive.send(`{"type":"ping","id":"2"}`); return nil })
	if err := alive.conn.WriteControl(websocket.PingMessage, []byte("client's own"), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	alive.want("ack", "2")
	got := <-pong
	wantEqual(t, "payload of the pong", got, "client's own")
}

// TestDrainEndsSockets: a server that shuts down closes its sockets, and waits for the requests
// that they have started.
func TestDrainEndsSockets(t *testing.T) {
	t.Parallel()
	node := setup(t)
	outputs := node.captureOutputs()
	idle, watching, starting := node.dial(), node.dial(), node.dial()
	watching.send(runFrame("1", inputOf("r1", "hello")))
	watching.want("ack", "1")
	s := outputs.next(node)
	first := watching.want("event", "1")

	begun, release := make(chan struct{}), make(chan struct{})
	node.temporal.start = func(runs.Input) error { close(begun); <-release; return errors.New("out of time") }
	in := inputOf("r", "hello")
	in.ThreadID = "other"
	starting.send(runFrame("1", in))
	<-begun

	node.server.Drain()
	idle.wantClosed(websocket.CloseGoingAway)
	watching.wantClosed(websocket.CloseGoingAway)
	starting.wantClosed(websocket.CloseGoingAway)
	short, cancel := context.WithTimeout(node.ctx(), 50*time.Millisecond)
	defer cancel()
	if err := node.server.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait during the start of a run = %v, want %v", err, context.DeadlineExceeded)
	}
	close(release)
	if err := node.server.Wait(node.ctx()); err != nil {
		t.Error(err)
	}
	if _, resp, err := websocket.DefaultDialer.DialContext(node.ctx(), wsURL(node.http.URL), nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("dial of a draining server: %v, want the status %d", err, http.StatusServiceUnavailable)
	}
	s.end()
	next := node.serveOn(t, func(l net.Listener) net.Listener { return l })
	node.dialAt(wsURL(next)) // it reads nothing and never closes: it does not delay the shutdown
	c := node.dialAt(wsURL(next))
	c.send(subscribeFrame("1", "r1", first.Cursor))
	c.want("ack", "1")
	_, events := c.until("1", "end")
	wantEqual(t, "number of events after the first event", len(events), 3)
}

// withShortWriteTimeout disconnects clients that read nothing for a second, which is longer than a
// busy machine needs.
func withShortWriteTimeout(c *api.Config) { c.WriteTimeout = time.Second }

// serveOn starts another API server with the node's configuration on a wrapped listener, and
// returns its address.
func (n *node) serveOn(t *testing.T, wrap func(net.Listener) net.Listener, change ...func(*api.Config)) string {
	t.Helper()
	cfg := n.server.Config
	for _, c := range change {
		c(&cfg)
	}
	server := api.New(cfg)
	front := httptest.NewUnstartedServer(server.Handler())
	front.Listener = wrap(front.Listener)
	front.Start()
	t.Cleanup(func() {
		server.Drain()
		front.Close()
		if err := server.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return front.URL
}

// TestSlowClientIsDisconnected: a client that does not read is disconnected. After it reconnects it
// gets the missing events. Other clients of the same run and node are not affected.
func TestSlowClientIsDisconnected(t *testing.T) {
	t.Parallel()
	node := setup(t)
	outputs := node.captureOutputs()
	disconnected := make(chan struct{}, 1)
	slowly := node.serveOn(t, func(l net.Listener) net.Listener {
		return &smallBufferListener{Listener: l, disconnected: disconnected}
	}, withShortWriteTimeout)
	steady := node.dial()
	steady.send(runFrame("1", inputOf("r1", "hello")))
	steady.want("ack", "1")
	s := outputs.next(node)
	slow := node.dialAt(wsURL(slowly))
	slow.send(subscribeFrame("1", "r1", ""))
	slow.want("ack", "1")

	var all []string
	text := strings.Repeat("x", 32<<10)
	for range 2 {
		all = append(all, steady.want("event", "1").line())
	}
	for range 100 { // far more than the buffers of a narrow connection, and less than a node keeps of a thread
		s.say(text)
		all = append(all, steady.want("event", "1").line())
	}
	<-disconnected
	s.end()
	_, rest := steady.until("1", "end")
	all = append(all, rest...)

	var head []string
	for {
		f, err := slow.read()
		if err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
				t.Errorf("end of the slow client: got %v, want no close frame", err)
			}
			break
		}
		head = append(head, f.line())
	}
	if len(head) == 0 {
		t.Errorf("slow client = %v, want at least 1", len(head))
	}
	if len(head) >= len(all) {
		t.Errorf("slow client = %v, want less than %v", len(head), len(all))
	}
	back := node.dial()
	back.send(subscribeFrame("1", "r1", cursors(head[len(head)-1])[0]))
	back.want("ack", "1")
	_, rest = back.until("1", "end")
	if diff := cmp.Diff(all, slices.Concat(head, rest)); diff != "" {
		t.Errorf("events of the slow client (-want +got): %.2000s", diff)
	}
}

// smallBufferListener accepts connections with small buffers, and reports when the server closes
// one.
type smallBufferListener struct {
	net.Listener
	disconnected chan struct{}
}

func (l *smallBufferListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	return &smallBufferConn{TCPConn: tcp, disconnected: l.disconnected}, tcp.SetWriteBuffer(4 << 10)
}

type smallBufferConn struct {
	*net.TCPConn
	once         sync.Once
	disconnected chan struct{}
}

func (c *smallBufferConn) Close() error {
	c.once.Do(func() { c.disconnected <- struct{}{} })
	return c.TCPConn.Close()
}
