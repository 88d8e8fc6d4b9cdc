package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bytes returns the bytes that a tenant has in the log. ok is false before the first CountBytes.
func (f *Follower) Bytes(tenant string) (size int64, ok bool) {
	token := Token(tenant)
	f.usage.mu.Lock()
	defer f.usage.mu.Unlock()
	return f.usage.counted[token] + f.usage.before[token] + f.usage.added[token], f.usage.isCounted
}

// CountBytes counts the bytes of a tenant exactly, or those of all tenants the first time. It reads
// the headers of all records of the tenant, and the descriptions of all blobs, which takes seconds
// for a million of them. Only one call may run at a time.
func (f *Follower) CountBytes(ctx context.Context, tenant string) error {
	f.usage.mu.Lock()
	token, filter := Token(tenant), f.log.prefix+"."+Token(tenant)+".>"
	if !f.usage.isCounted {
		token, filter = "", f.log.prefix+".>"
	}
	f.usage.mu.Unlock()
	// Records are delivered concurrently. The count ends at the position at which added begins.
	f.mu.Lock()
	last := f.delivered
	f.usage.mu.Lock()
	before := f.usage.added
	f.usage.before, f.usage.added = before, map[string]int64{} // Bytes has both until the count ends
	f.usage.mu.Unlock()
	f.mu.Unlock()

	counted := map[string]int64{}
	err := f.log.countRecords(ctx, filter, last, counted)
	if err == nil {
		err = f.log.countBlobs(ctx, counted)
	}
	f.usage.mu.Lock()
	defer f.usage.mu.Unlock()
	f.usage.before = nil
	for of, size := range before {
		if err != nil || token != "" && of != token {
			f.usage.added[of] += size
		}
	}
	if err != nil {
		return fmt.Errorf("stream: count bytes: %w", err)
	}
	if token == "" {
		f.usage.counted, f.usage.isCounted = counted, true
	} else {
		f.usage.counted[token] = counted[token]
	}
	return nil
}

// countRecords adds the sizes of the records up to the sequence last to sizes.
func (l *Log) countRecords(ctx context.Context, filter string, last uint64, sizes map[string]int64) error {
	consumer, err := l.js.CreateConsumer(ctx, l.name, jetstream.ConsumerConfig{
		FilterSubject: filter, HeadersOnly: true, DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerTTL, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return err
	}
	defer func() { _ = l.nc.Publish("$JS.API.CONSUMER.DELETE."+l.name+"."+consumer.CachedInfo().Name, nil) }()
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(countBatch), jetstream.PullHeartbeat(consumerHeartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Stream <= last {
			size, _ := strconv.ParseInt(msg.Headers().Get(sizeHeader), 10, 64) // JetStream sets the header
			sizes[l.tenantOf(msg.Subject())] += size + overhead(msg.Subject(), msg.Headers())
		}
		if meta.Sequence.Stream >= last || meta.NumPending == 0 {
			return nil
		}
	}
}

// sizeHeader is the header with the size of the data of a message that is delivered without data.
const sizeHeader = "Nats-Msg-Size"

// countBatch is the number of headers that CountBytes requests at once.
const countBatch = 2_000

// countBlobs adds the sizes of all blobs to sizes.
func (l *Log) countBlobs(ctx context.Context, sizes map[string]int64) error {
	blobs, err := l.blobs.Watch(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = blobs.Stop() }()
	for {
		select {
		case info, ok := <-blobs.Updates():
			if !ok {
				return errors.New("the watch of blobs has ended")
			}
			if info == nil { // that was the last one
				return nil
			}
			if strings.HasPrefix(info.Name, l.prefix+".") {
				sizes[l.tenantOf(info.Name)] += int64(info.Size)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tenantOf returns the token of the tenant in the subject of a record or the name of a blob.
func (l *Log) tenantOf(subject string) string {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(subject, l.prefix+"."), ".")
	return tenant
}

// overhead returns the bytes that JetStream stores for a message besides its data: subject, headers
// and a fixed part.
func overhead(subject string, headers nats.Header) int64 {
	const fixed, head = 30, len("NATS/1.0\r\n\r\n") + 4
	size := fixed + len(subject)
	if len(headers) > 0 {
		size += head
	}
	for name, values := range headers {
		for _, value := range values {
			if name != sizeHeader {
				size += len(name) + len(value) + len(": \r\n")
			}
		}
	}
	return int64(size)
}

// sizeOf returns the bytes of a record that was just written, with the blobs that it refers to.
func sizeOf(msg jetstream.Msg) int64 {
	size := int64(len(msg.Data())) + overhead(msg.Subject(), msg.Headers())
	if bytes.Contains(msg.Data(), referencePrefix) {
		size += int64(referredSize(bytes.Split(msg.Data(), []byte("\n"))))
	}
	return size
}
