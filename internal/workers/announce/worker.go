package announce

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/stream"
)

// Announcement keeps the announcement of one worker current, in a goroutine that Start begins and
// Stop ends. After Start only that goroutine uses schemas, written and due.
type Announcement struct {
	kv      jetstream.KeyValue
	schemas schemaStore
	key     string
	worker  Worker
	Contents
	// written is the announcement that was written last.
	written []byte
	// due is when to write the announcement again, unless it changes before that.
	due  time.Time
	stop context.CancelFunc
	wait sync.WaitGroup
}

// Contents is what a worker announces. A goroutine calls the functions every second, because the tools
// of MCP servers, the keys of providers and circuits change: so an announcement is written at most once
// a second.
type Contents struct {
	// Offers lists the tools, and Names returns the programs, the configured model providers and the
	// scripts.
	Offers func() []Offer
	Names  func() agents.Names
	// Circuits returns the circuits that are not closed, sorted by model; nil = there are none.
	Circuits func() []Circuit
	// Signer signs the assertions of the worker. The goroutine refreshes its keys, and announces the
	// public ones. nil = the worker makes no assertions.
	Signer *assertion.Signer
}

// Start announces the contents of a worker until Stop, which the caller must call. It returns after the
// first announcement was written.
func Start(ctx context.Context, l *stream.Log, worker Worker, contents Contents) (*Announcement, error) {
	kv, err := open(ctx, l)
	if err != nil {
		return nil, err
	}
	schemas, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	a := &Announcement{
		kv: kv, schemas: schemaStore{kv: schemas, stored: map[string]bool{}},
		key: strings.TrimPrefix(stream.Token(worker.Name), "~"), worker: worker,
		Contents: contents,
	}
	if err := a.announce(ctx); err != nil {
		return nil, err
	}
	var live context.Context
	live, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.wait.Go(func() { a.repeat(live) })
	return a, nil
}

// announce writes the contents of the worker if they have changed, or if the last announcement is due
// for renewal. It stores the schemas before, so that a reader of the announcement finds them.
func (a *Announcement) announce(ctx context.Context) error {
	names := a.Names()
	announced := announcedNames{
		Worker: a.worker, Tools: []Tool{}, Programs: slices.Sorted(slices.Values(names.Programs)),
		Providers: slices.Sorted(slices.Values(names.Providers)), Scripts: slices.Sorted(slices.Values(names.Scripts)),
		Keys: a.Signer.Refresh(ctx),
	}
	if a.Circuits != nil {
		announced.Circuits = a.Circuits()
	}
	for _, o := range a.Offers() {
		t, err := a.schemas.describe(ctx, o)
		if err != nil {
			return err
		}
		announced.Tools = append(announced.Tools, t)
	}
	body, err := json.Marshal(announced)
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	if bytes.Equal(body, a.written) && time.Now().Before(a.due) {
		return nil
	}
	if _, err := a.kv.Put(ctx, a.key, body); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	a.written, a.due = body, time.Now().Add(renewInterval)
	return nil
}

// open opens the bucket of announcements, whose TTL removes those of dead workers.
func open(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: tools of workers", Storage: jetstream.FileStorage, TTL: announcementTTL,
	})
}

// repeat calls announce every checkInterval until ctx ends. It ignores errors: the next round tries
// again, and readers without the log cannot read the announcement either.
func (a *Announcement) repeat(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			announceCtx, cancel := context.WithTimeout(ctx, renewInterval)
			_ = a.announce(announceCtx)
			cancel()
		}
	}
}

// Stop ends the goroutine, waits for it, and deletes the announcement.
func (a *Announcement) Stop(ctx context.Context) error {
	a.stop()
	a.wait.Wait()
	if err := a.kv.Delete(ctx, a.key); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}
