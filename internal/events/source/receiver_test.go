package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

const subjects = `
- {name: orders, tenant: acme, nats: {subject: orders.>, stream: ORDERS}}
- {name: clicks, nats: {subject: clicks.*}}
`

// receiving is a receiver that runs.
type receiving struct {
	appended chan *events.Event
	recorded chan auth.Principal
	// fail returns the error of an attempt to append an event.
	fail func(*events.Event) error
	stop func() // and waits
}

// receive runs a receiver until the test ends.
func receive(t *testing.T, nc *nats.Conn, fail func(*events.Event) error, change ...func(*Receiver)) *receiving {
	t.Helper()
	set, err := open(t, subjects)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiving{appended: make(chan *events.Event, 100), recorded: make(chan auth.Principal, 100), fail: fail}
	receiver := &Receiver{Sources: set, Conn: nc, OnError: func(error) {}, Append: func(_ context.Context, e *events.Event) (bool, error) {
		if r.fail != nil {
			if err := r.fail(e); err != nil {
				return false, err
			}
		}
		r.appended <- e
		return true, nil
	}}
	receiver.TakeRate = func(auth.Principal) time.Duration { return 0 }
	receiver.Record = func(_ context.Context, sender auth.Principal) error { r.recorded <- sender; return nil }
	for _, c := range change {
		c(receiver)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); receiver.Run(ctx) }()
	r.stop = func() { cancel(); <-ended }
	t.Cleanup(r.stop)
	return r
}

// next returns the next event.
func (r *receiving) next(t *testing.T) *events.Event {
	t.Helper()
	select {
	case e := <-r.appended:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event within 20 s")
		return nil
	}
}

// orders creates the stream ORDERS.
func orders(t *testing.T, nc *nats.Conn, retention jetstream.RetentionPolicy) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Retention: retention}); err != nil {
		t.Fatal(err)
	}
	return js
}

// awaitConsumer blocks until the source orders has its consumer.
func awaitConsumer(t *testing.T, js jetstream.JetStream) jetstream.Consumer {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; {
		c, err := js.Consumer(t.Context(), "ORDERS", "perdure-orders")
		if err == nil {
			return c
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// publish appends a message to the stream.
func publish(t *testing.T, js jetstream.JetStream, m *nats.Msg) {
	t.Helper()
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// TestSourcesOfOneSubject: sources whose subjects overlap get the same messages, each its own event.
func TestSourcesOfOneSubject(t *testing.T) {
	t.Parallel()
	nc := streamtest.Connect(t, streamtest.Server(t))
	set, err := open(t, "- {name: all, tenant: acme, nats: {subject: clicks.>}}\n- {name: some, nats: {subject: clicks.*}}\n")
	if err != nil {
		t.Fatal(err)
	}
	r := receive(t, nc, nil, func(receiver *Receiver) { receiver.Sources = set })
	tenants := map[string]string{} // by the data of a message
	late := time.After(20 * time.Second)
	for n := 0; ; n++ { // the first messages may arrive before both subscribe
		if err := nc.Publish("clicks.first", fmt.Appendf(nil, `{"n":%d}`, n)); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-r.appended:
			data := string(e.Data)
			if other, ok := tenants[data]; ok && other != e.Tenant {
				return
			}
			tenants[data] = e.Tenant
		case <-time.After(10 * time.Millisecond): // time between two messages
		case <-late:
			t.Fatalf("tenants by message = %v, want both for one", tenants)
		}
	}
}

// TestMessagesAwaitRate: a message beyond the rate of its tenant becomes an event later, in its order, and
// each has an entry in the audit log with its source. A receiver that stops gives the message back.
func TestMessagesAwaitRate(t *testing.T) {
	t.Parallel()
	nc := streamtest.Connect(t, streamtest.Server(t))
	js := orders(t, nc, jetstream.WorkQueuePolicy)
	for range 3 {
		publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{}`)})
	}
	asked, room := make(chan auth.Principal, 100), make(chan time.Duration, 100)
	bounded := func(r *Receiver) {
		r.TakeRate = func(sender auth.Principal) time.Duration { asked <- sender; return <-room }
	}
	r := receive(t, nc, nil, bounded)
	sender := auth.Principal{Tenant: "acme", Subject: "/nats/orders"}
	for _, id := range []string{"ORDERS:1", "ORDERS:2"} {
		for _, wait := range []time.Duration{time.Millisecond, time.Millisecond, 0} {
			if got := <-asked; got.Tenant != sender.Tenant || got.Subject != sender.Subject {
				t.Errorf("sender = %+v, want %+v", got, sender)
			}
			if n := len(r.appended); n != 0 {
				t.Errorf("events before there was room = %d, want none", n)
			}
			room <- wait
		}
		if e := r.next(t); !strings.HasPrefix(e.ID, id+":") {
			t.Errorf("ID = %s, want %s", e.ID, id)
		}
		if got := <-r.recorded; got.Subject != sender.Subject {
			t.Errorf("recorded sender = %+v, want %+v", got, sender)
		}
	}
	<-asked
	room <- time.Hour
	r.stop()
	if e := receive(t, nc, nil).next(t); !strings.HasPrefix(e.ID, "ORDERS:3:") {
		t.Errorf("ID after a restart = %s, want ORDERS:3", e.ID)
	}
}

// TestMessagesOfStreams: messages that arrive after the first start become events, in their order, also
// if the first attempt fails. One that is no event does not stop the others. A message is acknowledged
// when its event is durable.
func TestMessagesOfStreams(t *testing.T) {
	t.Parallel()
	nc := streamtest.Connect(t, streamtest.Server(t))
	js := orders(t, nc, jetstream.LimitsPolicy)
	publish(t, js, &nats.Msg{Subject: "orders.old", Data: []byte(`{}`)})
	attempts := 0
	r := receive(t, nc, func(e *events.Event) error {
		if attempts++; e.ID == "m-1" && attempts == 1 {
			return errors.New("unavailable")
		}
		return nil
	})
	c := awaitConsumer(t, js)
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{"n":1}`), Header: nats.Header{nats.MsgIdHdr: {"m-1"}}})
	if e := r.next(t); e.ID != "m-1" || e.Type != "orders" || e.Source != "/nats/orders.new" || e.Tenant != "acme" || string(e.Data) != `{"n":1}` {
		t.Errorf("event = %+v, want the message m-1", e)
	}
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`not JSON`)})
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{"n":2}`)})
	if e := r.next(t); !strings.HasPrefix(e.ID, "ORDERS:4:") {
		t.Errorf("ID = %s, want the position ORDERS:4", e.ID)
	}
	for late := time.Now().Add(20 * time.Second); ; {
		info, err := c.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.NumAckPending == 0 && info.NumPending == 0 && info.AckFloor.Stream == 4 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("consumer = %+v, want all acknowledged", info)
		}
	}
	r.stop()
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{"n":3}`)})
	if e := receive(t, nc, nil).next(t); !strings.HasPrefix(e.ID, "ORDERS:5:") {
		t.Errorf("ID after a restart = %s, want ORDERS:5", e.ID)
	}
}

// TestWorkQueues: a source takes the messages that a work queue has before its first start.
func TestWorkQueues(t *testing.T) {
	t.Parallel()
	nc := streamtest.Connect(t, streamtest.Server(t))
	js := orders(t, nc, jetstream.WorkQueuePolicy)
	publish(t, js, &nats.Msg{Subject: "orders.old", Data: []byte(`{}`)})
	if e := receive(t, nc, nil).next(t); !strings.HasPrefix(e.ID, "ORDERS:1:") {
		t.Errorf("ID = %s, want ORDERS:1", e.ID)
	}
}

// TestMessagesOfRecreatedStream: a stream that was deleted and created again, or has lost its messages with
// the memory of a server, counts from 1 again. Its messages are other events.
func TestMessagesOfRecreatedStream(t *testing.T) {
	t.Parallel()
	nc := streamtest.Connect(t, streamtest.Server(t))
	js := orders(t, nc, jetstream.WorkQueuePolicy)
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{"n":1}`)})
	r := receive(t, nc, nil)
	before := r.next(t)
	if err := js.DeleteStream(t.Context(), "ORDERS"); err != nil {
		t.Fatal(err)
	}
	publish(t, orders(t, nc, jetstream.WorkQueuePolicy), &nats.Msg{Subject: "orders.new", Data: []byte(`{"n":2}`)})
	if after := r.next(t); after.Source != before.Source || after.ID == before.ID {
		t.Errorf("events = %s and %s of %s, want two IDs", before.ID, after.ID, after.Source)
	}
}

// TestMessagesOfSubjects: several workers share the messages of a subject. The stop takes what has
// arrived.
func TestMessagesOfSubjects(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	first, second := receive(t, streamtest.Connect(t, s), nil), receive(t, streamtest.Connect(t, s), nil)
	for late := time.Now().Add(20 * time.Second); subscribed(t, s) < 2; {
		if time.Now().After(late) {
			t.Fatal("no two subscriptions")
		}
	}
	nc := streamtest.Connect(t, s)
	for i := range 20 {
		if err := nc.Publish("clicks.web", fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range 20 {
		select {
		case e := <-first.appended:
			seen[string(e.Data)] = true
		case e := <-second.appended:
			seen[string(e.Data)] = true
		case <-time.After(20 * time.Second):
			t.Fatalf("events = %d, want 20", len(seen))
		}
	}
	first.stop()
	second.stop()
	if more := len(first.appended) + len(second.appended); more > 0 || len(seen) != 20 {
		t.Errorf("events = %d and %d more, want 20", len(seen), more)
	}
}

// subscribed returns the number of subscriptions to clicks.
func subscribed(t *testing.T, s *server.Server) (n int) {
	t.Helper()
	z, err := s.Subsz(&server.SubszOptions{Subscriptions: true, Test: "clicks.web"})
	if err != nil {
		t.Fatal(err)
	}
	return z.Total
}

// TestReceiverSurvivesRestart: after a restart of the servers, messages arrive as before.
func TestReceiverSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port := server.RANDOM_PORT
	start := func() *server.Server {
		return streamtest.ServerWith(t, func(o *server.Options) { o.StoreDir, o.Port = dir, port })
	}
	s := start()
	nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js := orders(t, nc, jetstream.LimitsPolicy)
	r := receive(t, nc, nil)
	awaitConsumer(t, js)
	port = s.Addr().(*net.TCPAddr).Port
	s.Shutdown()
	s.WaitForShutdown()
	s = start()
	for late := time.Now().Add(20 * time.Second); !nc.IsConnected() || subscribed(t, s) == 0; {
		if time.Now().After(late) {
			t.Fatal("no connection")
		}
	}
	publish(t, js, &nats.Msg{Subject: "orders.new", Data: []byte(`{}`)})
	if e := r.next(t); e.Type != "orders" {
		t.Errorf("event = %+v, want one of orders", e)
	}
	if err := nc.Publish("clicks.web", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if e := r.next(t); e.Type != "clicks" {
		t.Errorf("event = %+v, want one of clicks", e)
	}
}

// TestDeliveries: a message is a CloudEvent in both forms, or JSON.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := &Source{Name: "orders", Tenant: "acme", NATS: &Subject{Subject: "orders.>"}}
	const structured = `{"specversion":"1.0","id":"e1","source":"/shop","type":"paid","data":{"n":1}}`
	ce := nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"e1"}, "ce-source": {"/shop"}, "ce-type": {"paid"}, "content-type": {"application/json"}}
	for name, d := range map[string]delivery{
		"structured":             {data: []byte(structured), header: nats.Header{"content-type": {"application/cloudevents+json"}}},
		"structured, no headers": {data: []byte(structured)},
		"binary":                 {data: []byte(`{"n":1}`), header: ce},
	} {
		e, err := s.event(d)
		if err != nil || e.ID != "e1" || e.Source != "/shop" || e.Type != "paid" || string(e.Data) != `{"n":1}` || e.Tenant != "acme" {
			t.Errorf("%s: got %+v, %v, want the event e1", name, e, err)
		}
	}
	if e, err := s.event(delivery{header: nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"%C3%BC"}, "ce-source": {"/shop"}, "ce-type": {"paid"}}}); err != nil || e.ID != "ü" {
		t.Errorf("encoded ID: got %+v, %v, want ü", e, err)
	}
	plain := delivery{subject: "orders.new", data: []byte(`[1]`)}
	a, err := s.event(plain)
	if err != nil || a.Type != "orders" || a.Source != "/nats/orders.new" {
		t.Errorf("JSON: got %+v, %v, want an event of /nats/orders.new", a, err)
	}
	plain.subject = "orders.old"
	if b, err := s.event(plain); err != nil || b.ID == a.ID {
		t.Errorf("another subject: got %+v, %v, want another ID", b, err)
	}
	for name, d := range map[string]delivery{
		"text":             {data: []byte(`hello`)},
		"nothing":          {},
		"no ID":            {data: []byte(`{"specversion":"1.0","source":"/shop","type":"paid"}`)},
		"large":            {data: []byte(`"` + strings.Repeat("x", events.MaxEvent) + `"`)},
		"long ID":          {data: []byte(`{}`), header: nats.Header{nats.MsgIdHdr: {strings.Repeat("x", 257)}}},
		"bad ID":           {data: []byte(`{}`), header: nats.Header{nats.MsgIdHdr: {"\xff"}}},
		"bad ce-id":        {header: nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"\xff"}, "ce-source": {"/shop"}, "ce-type": {"paid"}}},
		"binary, bad":      {data: []byte(`{`), header: ce},
		"version 0.3":      {data: []byte(`{"specversion":"0.3","id":"1","source":"/shop","type":"paid"}`)},
		"two data":         {data: []byte(`{"specversion":"1.0","id":"1","source":"/shop","type":"paid","data":1,"data_base64":"MQ=="}`)},
		"number as base64": {data: []byte(`{"specversion":"1.0","id":"1","source":"/shop","type":"paid","data_base64":5}`)},
	} {
		if e, err := s.event(d); !errors.As(err, new(*ContentError)) {
			t.Errorf("%s: got %+v, %v, want a ContentError", name, e, err)
		}
	}
}

// FuzzDelivery: a message is an event with an ID, a source and a type, or refused.
func FuzzDelivery(f *testing.F) {
	s := &Source{Name: "orders", Tenant: "acme", NATS: &Subject{Subject: "orders.>"}}
	f.Add("orders.new", "ce-specversion", "1.0", []byte(`{"n":1}`))
	f.Add("orders.new", "content-type", "application/cloudevents+json", []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AA=="}`))
	f.Add("orders.new", "Nats-Msg-Id", "7", []byte(`{"specversion":"0.3"}`))
	f.Fuzz(func(t *testing.T, subject, name, value string, data []byte) {
		e, err := s.event(delivery{subject: subject, header: nats.Header{name: {value}}, data: data})
		if err == nil && (e.ID == "" || e.Source == "" || e.Type == "") || err != nil && !errors.As(err, new(*ContentError)) {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}
