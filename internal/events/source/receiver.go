package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/internal/events"
)

// Receiver makes events of the messages of all sources with a subject. Each worker has one; they share
// the messages.
type Receiver struct {
	Sources *Set
	// Conn is the connection to the servers that have the subjects and the streams.
	Conn *nats.Conn
	// Append makes an event durable.
	Append func(context.Context, *events.Event) (isNew bool, err error)
	// TakeRate counts a message of a sender, and returns 0, or returns how long the message must wait for
	// the rates of its tenant.
	TakeRate func(sender auth.Principal) (wait time.Duration)
	// Record writes the message of a sender, which is durable, to the audit log.
	Record func(ctx context.Context, sender auth.Principal) error
	// OnError is told of messages that are no events, and of failures after which the receiver tries
	// again. It is called concurrently.
	OnError func(error)
}

// groupPrefix begins the name of the queue group, or of the consumer, in which the workers share the messages
// of a source. Each source has its own: of queue groups with the same name, NATS delivers a message to one member,
// whatever their subjects are.
const groupPrefix = "perdure-"

const (
	// ackWait is how long a worker may take for a message of a stream. Then it is delivered again.
	ackWait = 30 * time.Second
	// appendTimeout bounds one attempt to make an event durable.
	appendTimeout = 10 * time.Second
	// drainTimeout bounds how long messages that have arrived may take after the end.
	drainTimeout = 2 * time.Second
	// retryDelay is the pause after a failure.
	retryDelay = time.Second
	// maxPending bounds the messages of a source that are under way in all workers.
	maxPending = 256
	// maxReceived bounds those that wait for their turn in one worker. At the least rate, one per
	// second, they have their turn within ackWait.
	maxReceived = 16
	// maxWait bounds a pause for the rates of a tenant, which may change meanwhile.
	maxWait = time.Second
)

// Run receives messages until ctx ends, and waits for those under way: at most drainTimeout for those of a
// source without a stream.
func (r *Receiver) Run(ctx context.Context) {
	var receiving sync.WaitGroup
	defer receiving.Wait()
	if r.Sources == nil {
		return
	}
	for i := range r.Sources.sources {
		if s := &r.Sources.sources[i]; s.NATS != nil {
			receiving.Go(func() { r.receive(ctx, s) })
		}
	}
}

// receive receives the messages of a source until ctx ends.
func (r *Receiver) receive(ctx context.Context, s *Source) {
	for ctx.Err() == nil {
		subscribe := r.consume
		if s.NATS.Stream == "" {
			subscribe = r.subscribe
		}
		err := subscribe(ctx, s)
		if ctx.Err() != nil {
			return
		}
		r.OnError(fmt.Errorf("source %s: %w", s.Name, err))
		_ = durations.Sleep(ctx, retryDelay)
	}
}

// subscribe receives the messages of a subject until ctx ends. One that cannot be made durable is lost.
// Those that wait for the rates of the tenant are in the memory of the client library, which drops
// further ones if they are too many.
func (r *Receiver) subscribe(ctx context.Context, s *Source) error {
	sub, err := r.Conn.QueueSubscribe(s.NATS.Subject, groupPrefix+s.Name, func(m *nats.Msg) {
		r.awaitRate(ctx, s)
		if err := r.take(ctx, s, delivery{subject: m.Subject, header: m.Header, data: m.Data}); err != nil {
			r.OnError(fmt.Errorf("source %s: a message is lost, or not in the audit log: %w", s.Name, err))
		}
	})
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	select {
	case <-closed:
		return errors.New("the subscription is gone")
	case <-ctx.Done():
	}
	if sub.Drain() == nil { // what has arrived is taken
		select {
		case <-closed:
		case <-time.After(drainTimeout):
		}
	}
	return ctx.Err()
}

// consume receives the messages of a stream until ctx ends or the consumer is gone.
func (r *Receiver) consume(ctx context.Context, s *Source) error {
	js, err := jetstream.New(r.Conn)
	if err != nil {
		return err
	}
	c, err := r.consumer(ctx, js, s)
	if err != nil {
		return err
	}
	consuming, err := c.Consume(func(m jetstream.Msg) { r.handle(ctx, s, m) },
		jetstream.PullMaxMessages(maxReceived), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			r.OnError(fmt.Errorf("source %s: %w", s.Name, err))
		}))
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		consuming.Drain() // what has arrived goes back at once
		<-consuming.Closed()
		return ctx.Err()
	case <-consuming.Closed():
		return errors.New("the consumer is gone")
	}
}

// consumer returns the consumer of a source. A new one begins with the messages that arrive after it,
// except in a work queue, whose messages nobody has taken yet.
func (r *Receiver) consumer(ctx context.Context, js jetstream.JetStream, s *Source) (jetstream.Consumer, error) {
	name := groupPrefix + s.Name
	c, err := js.Consumer(ctx, s.NATS.Stream, name)
	if err == nil && c.CachedInfo().Config.FilterSubject == s.NATS.Subject {
		return c, nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	config := jetstream.ConsumerConfig{
		Durable: name, Description: "Perdure: source of events", FilterSubject: s.NATS.Subject, DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: maxPending, MaxDeliver: -1,
	}
	stream, err := js.Stream(ctx, s.NATS.Stream)
	if err != nil {
		return nil, err
	}
	if stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy {
		config.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	return stream.CreateOrUpdateConsumer(ctx, config)
}

// handle takes a message of a stream, and acknowledges it when its event is durable. A message that is
// no event is not delivered again.
func (r *Receiver) handle(ctx context.Context, s *Source, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err == nil {
		// With the time, because a stream that is created again has the same sequences.
		position := fmt.Sprintf("%s:%d:%d", meta.Stream, meta.Sequence.Stream, meta.Timestamp.UnixMilli())
		d := delivery{subject: m.Subject(), header: m.Headers(), data: m.Data(), position: position}
		r.awaitRate(ctx, s)
		err = ctx.Err()
		if err == nil {
			err = r.take(ctx, s, d)
		}
	}
	switch {
	case err == nil:
		_ = m.Ack() // without it the message is delivered again, and is a duplicate
	case ctx.Err() != nil:
		_ = m.Nak()
	case errors.As(err, new(*ContentError)):
		r.OnError(fmt.Errorf("source %s: a message is no event: %w", s.Name, err))
		_ = m.Term()
	default:
		r.OnError(fmt.Errorf("source %s: %w", s.Name, err))
		_ = m.NakWithDelay(retryDelay)
	}
}

// awaitRate blocks until the rates of the tenant have room for a message of a source, or ctx ends. The
// next messages wait meanwhile, and keep their order.
func (r *Receiver) awaitRate(ctx context.Context, s *Source) {
	for ctx.Err() == nil {
		wait := r.TakeRate(s.sender())
		if wait == 0 {
			return
		}
		_ = durations.Sleep(ctx, min(wait, maxWait))
	}
}

// sender returns the sender of the messages of a source in NATS.
func (s *Source) sender() auth.Principal {
	return auth.Principal{Tenant: s.Tenant, Subject: subjectSource + s.Name}
}

// take makes a message a durable event, and records it. It continues when ctx ends. Errors:
// *ContentError.
func (r *Receiver) take(ctx context.Context, s *Source, d delivery) error {
	e, err := s.event(d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	e.Via = events.ViaNATS
	if _, err = r.Append(ctx, e); err != nil {
		return err
	}
	return r.Record(ctx, s.sender())
}
