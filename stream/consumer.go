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

// A JetStream consumer lives in the memory of one node, which may die. The client library's ordered
// consumer then recreates itself, but under one name until it succeeds: a cluster that has not
// noticed the death yet may place it on the dead node, and every request under that name then waits
// for that node. It cannot be stopped while it waits, either. Here every request has a name of its
// own and a deadline.

const (
	// consumerHeartbeat is the interval of heartbeats from the consumer's node. After two missing
	// ones the consumer is replaced. Readers see no record meanwhile.
	consumerHeartbeat = time.Second
	// consumerBatch bounds the messages in flight: with the largest records less than the 64 MiB
	// after which the client library drops messages.
	consumerBatch = 200
	// consumerLife is how long a consumer lives without requests: longer than a pull, which takes
	// 30 s.
	consumerLife = time.Minute
)

// consumer delivers the records of the log in order, until it breaks or is stopped. It does not
// replace itself.
type consumer struct {
	log     *Log
	name    string
	consume jetstream.ConsumeContext
	// lost is told when the connection is lost, with the messages in flight.
	lost chan nats.Status

	once   sync.Once
	broken chan struct{} // closed when the consumer delivers no more

	mu      sync.Mutex
	last    uint64 // how many messages have been delivered
	stopped bool
}

// deliver takes one message after the other.
type deliver func(jetstream.Msg, *jetstream.MsgMetadata)

// consume starts a consumer after a sequence.
func (l *Log) consume(ctx context.Context, behind uint64, to deliver) (*consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	c := &consumer{
		log: l, name: "follow_" + rand.Text(), broken: make(chan struct{}),
		lost: l.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED),
	}
	if err := c.start(ctx, behind, to); err != nil {
		c.requestDelete()
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

// receive delivers a message, unless one before it is missing.
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

// breakOff ends the consumer: its node is silent or gone, it was deleted, or a message is missing.
func (c *consumer) breakOff() { c.once.Do(func() { close(c.broken) }) }

// stop ends the consumer. When it returns, no message is delivered any more. It does not wait for
// the log.
func (c *consumer) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.consume.Stop()
	<-c.consume.Closed()
	c.requestDelete()
}

// requestDelete asks the server to delete the consumer, and waits for no answer: an unused consumer
// expires.
func (c *consumer) requestDelete() {
	c.log.nc.RemoveStatusListener(c.lost)
	if c.log.nc.IsConnected() {
		_ = c.log.nc.Publish("$JS.API.CONSUMER.DELETE."+c.log.name+"."+c.name, nil)
	}
}

// consumeAgain starts a consumer as soon as the log answers. It fails when ctx or the connection
// ends.
func (l *Log) consumeAgain(ctx context.Context, behind uint64, to deliver) (*consumer, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if l.nc.IsConnected() { // otherwise the requests would be buffered and sent all together
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
