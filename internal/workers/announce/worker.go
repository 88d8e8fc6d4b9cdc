package announce

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// Announcement is what one worker says.
type Announcement struct {
	kv     jetstream.KeyValue
	shelf  shelf
	key    string
	offers func() []Offer
	said   []byte
	due    time.Time // for saying the same again
	stop   context.CancelFunc
	wait   sync.WaitGroup
}

// Start announces a worker's tools until Stop, which must be called. offers lists them; it is asked
// every time, since those of servers come and go.
func Start(ctx context.Context, l *stream.Log, worker string, offers func() []Offer) (*Announcement, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	schemas, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	a := &Announcement{
		kv: kv, shelf: shelf{kv: schemas, stored: map[string]bool{}},
		key: strings.TrimPrefix(stream.Token(worker), "~"), offers: offers,
	}
	if err := a.announce(ctx); err != nil {
		return nil, err
	}
	var live context.Context
	live, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.wait.Go(func() { a.repeat(live) })
	return a, nil
}

// announce announces what there is now, if that is news or was said long ago.
func (a *Announcement) announce(ctx context.Context) error {
	announced := []Tool{}
	for _, o := range a.offers() {
		t, err := a.shelf.describe(ctx, o)
		if err != nil {
			return err
		}
		announced = append(announced, t)
	}
	body, err := json.Marshal(announced)
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	if bytes.Equal(body, a.said) && time.Now().Before(a.due) {
		return nil
	}
	if _, err := a.kv.Put(ctx, a.key, body); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	a.said, a.due = body, time.Now().Add(interval)
	return nil
}

func open(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: which tools workers have", Storage: jetstream.FileStorage, TTL: lasting,
	})
}

// repeat says it again and again. While the log is away nobody hears it, and nobody misses it.
func (a *Announcement) repeat(ctx context.Context) {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			once, cancel := context.WithTimeout(ctx, interval)
			_ = a.announce(once)
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
