package stream

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
)

// This file has the consumer of a Follower. A JetStream consumer lives in the memory of one node,
// which may die. The client library's ordered consumer (ADR-17) then recreates itself, but under
// one name until it succeeds. A cluster that has not noticed the death yet may place it on the dead
// node, and every request under that name then waits for that node. It cannot be stopped while it
// waits, either. So here every consumer has a new name, and every request a deadline.

const (
	// consumerHeartbeat is the interval of heartbeats from the consumer's node. After two missing
	// ones the consumer is replaced. Readers see no record meanwhile.
	consumerHeartbeat = time.Second
	// consumerBatch bounds the messages in flight: with the largest records less than the 64 MiB
	// after which the client library drops messages.
	consumerBatch = 200
	// consumerTTL is how long a consumer lives without requests: longer than a pull, which takes
	// 30 s.
	consumerTTL = time.Minute
)

// consumer delivers the records of the log in order, until it breaks or is stopped. It does not
// replace itself: its owner stops it and calls consumeAgain.
type consumer struct {
	log     *Log
	name    string // random; no other consumer ever has it
	consume jetstream.ConsumeContext
	// lost receives a status when the connection is lost: messages in flight are lost with it.
	lost chan nats.Status

	breakOnce sync.Once
	broken    chan struct{} // closed when the consumer delivers no more

	mu      sync.Mutex
	last    uint64 // the consumer's sequence of the last delivered message
	stopped bool   // receive drops further messages
}

// deliverFunc receives one message after the other. It must not block: the consumer's goroutine
// calls it.
type deliverFunc func(jetstream.Msg, *jetstream.MsgMetadata)

// consume starts a consumer that delivers every record after a sequence. It waits at most
// readTimeout for the server.
func (l *Log) consume(ctx context.Context, after uint64, deliver deliverFunc) (*consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c := &consumer{
		log: l, name: "follow_" + rand.Text(), broken: make(chan struct{}),
		lost: l.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED),
	}
	if err := c.start(ctx, after, deliver); err != nil {
		c.requestDelete()
		return nil, err
	}
	return c, nil
}

// start creates the consumer on the server and begins to pull.
func (c *consumer) start(ctx context.Context, after uint64, deliver deliverFunc) error {
	created, err := c.log.js.CreateConsumer(ctx, c.log.name, jetstream.ConsumerConfig{
		Name: c.name, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerTTL, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return fmt.Errorf("stream: consumer: %w", err)
	}
	c.consume, err = created.Consume(func(msg jetstream.Msg) { c.receive(msg, deliver) },
		jetstream.PullHeartbeat(consumerHeartbeat), jetstream.PullMaxMessages(consumerBatch),
		jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) { c.breakOff() }))
	if err != nil {
		return fmt.Errorf("stream: consumer: %w", err)
	}
	return nil
}

// receive delivers a message. If one before it is missing it breaks the consumer instead: readers
// must not skip a record.
func (c *consumer) receive(msg jetstream.Msg, deliver deliverFunc) {
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
	deliver(msg, meta)
}

// breakOff marks the consumer as broken: its node is silent or gone, it was deleted, or a message
// is missing.
func (c *consumer) breakOff() { c.breakOnce.Do(func() { close(c.broken) }) }

// stop ends the consumer. After it returns, no message is delivered. It does not wait for the
// server.
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

// consumeAgain starts a consumer after a sequence as soon as the log answers. It retries
// until ctx ends or the connection is closed.
func (l *Log) consumeAgain(ctx context.Context, after uint64, deliver deliverFunc) (*consumer, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if l.nc.IsConnected() { // otherwise the requests would be buffered and sent all together
			c, err := l.consume(ctx, after, deliver)
			if err == nil {
				return c, nil
			}
		}
		if l.nc.IsClosed() {
			return nil, fmt.Errorf("stream: consumer: %w", nats.ErrConnectionClosed)
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}
