package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// Announcement is what one worker says.
type Announcement struct {
	kv   jetstream.KeyValue
	key  string
	body []byte
	stop context.CancelFunc
	wait sync.WaitGroup
}

// Start announces a worker's tools until Stop, which must be called.
func Start(ctx context.Context, l *stream.Log, worker string, specs []tools.Spec) (*Announcement, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	announced, err := storeSchemas(ctx, l, specs)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(announced)
	if err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	a := &Announcement{kv: kv, key: strings.TrimPrefix(stream.Token(worker), "~"), body: body}
	if _, err := kv.Put(ctx, a.key, body); err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	var live context.Context
	live, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.wait.Go(func() { a.repeat(live) })
	return a, nil
}

func open(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: which tools workers have", Storage: jetstream.FileStorage, TTL: lasting,
	})
}

// repeat says it again and again. While the log is away nobody hears it, and nobody misses it.
func (a *Announcement) repeat(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			once, cancel := context.WithTimeout(ctx, interval)
			_, _ = a.kv.Put(once, a.key, a.body)
			cancel()
		}
	}
}

// Stop takes the announcement back.
func (a *Announcement) Stop(ctx context.Context) error {
	a.stop()
	a.wait.Wait()
	if err := a.kv.Delete(ctx, a.key); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}
