package admission

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// keptValues is how long the bucket keeps a value after its last change: longer than any pause.
const keptValues = time.Hour

// openBucket opens the bucket, and creates it if it is missing.
func openBucket(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "models", Description: "Perdure: active calls of model providers, and their pauses", Storage: jetstream.FileStorage, TTL: keptValues,
	})
}

// bucket is what a worker writes to the bucket with. It is safe for concurrent use.
type bucket struct {
	kv       jetstream.KeyValue
	worker   string          // a name of this process that no other one has, also not an earlier one
	lifetime context.Context // ends when the gate stops
	tasks    *sync.WaitGroup // the goroutines of the gate
}

// writeTimeout bounds a write after the end of a call.
const writeTimeout = 5 * time.Second

// writeInBackground does a write in the background. The gate waits for it when it stops.
func (b bucket) writeInBackground(write func(ctx context.Context) error) {
	b.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(b.lifetime, writeTimeout)
		defer cancel()
		_ = write(ctx) // a renewal repeats it, and leases and pauses end by themselves
	})
}

// The first parts of keys.
const (
	keyLimit = "limit"
	keyPause = "pause"
)
