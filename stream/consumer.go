package stream

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JetStream's consumer lives in the memory of one node, which may die. The client library has an
// ordered consumer that then makes itself anew, but that is not exact enough about time: it asks for
// its successor under one name until it gets it. A cluster that has not noticed the death yet may
// place the successor on the dead node, and from then on every request under that name goes there
// and is not answered before the node is back. Nor can it be stopped while it asks. Here every
// request has a name of its own and an end.

const (
	// consumerHeartbeat is how often the node that serves a consumer shows that it lives; two that stay
	// out and the consumer is made anew elsewhere. Meanwhile readers see nothing.
	consumerHeartbeat = time.Second
	// consumerBatch bounds what is on its way: with the largest frames less than the 64 MiB beyond
	// which the client library drops what it receives.
	consumerBatch = 200
	// consumerLife is how long a consumer stays that nobody asks; longer than a pull, which takes 30 s.
	consumerLife = time.Minute
)

// consumer delivers the records of the log in order, until it is broken or stopped. It never makes
// itself anew.
type consumer struct {
	log     *Log
	name    string
	consume jetstream.ConsumeContext
	// lost hears that the connection is, and with it what was on its way.
	lost chan nats.Status

	once   sync.Once
	broken chan struct{} // closed when what comes next will not be delivered

	mu      sync.Mutex
	last    uint64 // how many messages have been delivered
	stopped bool
}

// deliver is given one message after another.
type deliver func(jetstream.Msg, *jetstream.MsgMetadata)

// consume starts a consumer behind a sequence.
func (l *Log) consume(ctx context.Context, behind uint64, to deliver) (*consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	c := &consumer{
		log: l, name: "follow_" + rand.Text(), broken: make(chan struct{}),
		lost: l.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED),
	}
	if err := c.start(ctx, behind, to); err != nil {
		c.forget()
		return nil, err
	}
	return c, nil
}

func (c *consumer) start(ctx context.Context, behind uint64, to deliver) error {
	made, err := c.log.js.CreateConsumer(ctx, c.log.name, jetstream.ConsumerConfig{
		Name: c.name, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: behind + 1,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerLife, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return fmt.Errorf("stream: consumer: %w", err)
	}
	c.consume, err = made.Consume(func(msg jetstream.Msg) { c.receive(msg, to) },
		jetstream.PullHeartbeat(consumerHeartbeat), jetstream.PullMaxMessages(consumerBatch),
		jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) { c.breakOff() }))
	if err != nil {
		return fmt.Errorf("stream: consumer: %w", err)
	}
	return nil
}

// receive delivers a message unless one before it is missing.
func (c *consumer) receive(msg jetstream.Msg, to deliver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	meta, err := msg.Metadata()
	if err != nil || meta.Sequence.Consumer != c.last+1 {
		c.breakOff()
		return
	}
	c.last++
	to(msg, meta)
}

// breakOff says that nothing can be expected of the consumer any more, whatever the reason: its node
// is silent or gone, it was deleted, a message is missing.
func (c *consumer) breakOff() { c.once.Do(func() { close(c.broken) }) }

// stop ends the consumer: when it returns nothing is delivered any more. It does not wait for the log.
func (c *consumer) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.consume.Stop()
	<-c.consume.Closed()
	c.forget()
}

// forget has the consumer deleted, if it was made. No answer is expected: if nobody hears it the
// consumer ends by itself.
func (c *consumer) forget() {
	c.log.nc.RemoveStatusListener(c.lost)
	if c.log.nc.IsConnected() {
		_ = c.log.nc.Publish("$JS.API.CONSUMER.DELETE."+c.log.name+"."+c.name, nil)
	}
}

// consumeAgain starts a consumer as soon as the log can. It fails when ctx or the connection ends.
func (l *Log) consumeAgain(ctx context.Context, behind uint64, to deliver) (*consumer, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if l.nc.IsConnected() { // or requests would gather, to be sent together when it is
			c, err := l.consume(ctx, behind, to)
			if err == nil {
				return c, nil
			}
		}
		if l.nc.IsClosed() {
			return nil, fmt.Errorf("stream: consumer: %w", nats.ErrConnectionClosed)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}
