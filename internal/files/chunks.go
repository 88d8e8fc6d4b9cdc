package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// chunkBytes is the size of a chunk. NATS takes messages of up to 1 MiB by default.
const chunkBytes = 256 << 10

// chunkTime is how long NATS may take to acknowledge a chunk: a server that loses the leadership of the stream
// may never do it.
const chunkTime = 10 * time.Second

// writeWindow is how many chunks of one blob are on the way to NATS at a time.
const writeWindow = 4

// chunks is the Storage in NATS: a stream with a subject for each chunk of a blob, so that a range of a
// blob needs only its chunks. The object store of nats.go reads objects from their start. The last
// chunk of a blob is shorter than chunkBytes, and may be empty: a blob without it is incomplete.
type chunks struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	prefix string // of the subjects; the names of the blob and the number of the chunk follow
}

// openChunks opens the stream of chunks, and creates it if it is missing.
func openChunks(ctx context.Context, l *stream.Log) (*chunks, error) {
	js, err := jetstream.New(l.Conn(), jetstream.WithPublishAsyncTimeout(chunkTime))
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	c := &chunks{js: js}
	c.stream, c.prefix, err = l.OwnStream(ctx, jetstream.StreamConfig{
		Name: "files", Description: "Perdure: bytes of files", Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, AllowDirect: true,
	})
	return c, err
}

func (c *chunks) subject(name string, chunk int64) string {
	return c.prefix + "." + name + "." + strconv.FormatInt(chunk, 10)
}

// Write implements Storage. After an error it waits for the chunks on the way, for cleanupTime at most, so that
// none arrives after Remove.
func (c *chunks) Write(ctx context.Context, name string, r io.Reader) (err error) {
	var sent []jetstream.PubAckFuture
	defer func() {
		if err != nil {
			settle(sent)
		}
	}()
	await := func(most int) error {
		for len(sent) > most {
			select {
			case <-sent[0].Ok():
			case err := <-sent[0].Err():
				sent = sent[1:] // settle would wait for it again
				return unavailable(err)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			sent = sent[1:]
		}
		return nil
	}
	for n := int64(0); ; n++ {
		chunk := make([]byte, chunkBytes) // the client library keeps it until it is acknowledged
		size, err := io.ReadFull(r, chunk)
		isLast := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !isLast {
			return err
		}
		future, err := c.js.PublishAsync(c.subject(name, n), chunk[:size])
		if err != nil {
			return unavailable(err)
		}
		if sent = append(sent, future); isLast {
			return await(0)
		}
		if err := await(writeWindow - 1); err != nil {
			return err
		}
	}
}

// settle waits until chunks are stored or have failed, for cleanupTime at most.
func settle(sent []jetstream.PubAckFuture) {
	late := time.NewTimer(cleanupTime)
	defer late.Stop()
	for _, future := range sent {
		select {
		case <-future.Ok():
		case <-future.Err(): //nolint:errcheck // because the caller has the first error
		case <-late.C:
			return
		}
	}
}

// Open implements Storage.
func (c *chunks) Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	return &chunkReader{ctx: ctx, chunks: c, name: name, next: offset / chunkBytes, skip: int(offset % chunkBytes)}, nil
}

// Remove implements Storage.
func (c *chunks) Remove(ctx context.Context, name string) error {
	return unavailable(c.stream.Purge(ctx, jetstream.WithPurgeSubject(c.prefix+"."+name+".*")))
}

// chunkReader reads a blob chunk by chunk.
type chunkReader struct {
	ctx    context.Context
	chunks *chunks
	name   string
	next   int64  // number of the next chunk
	skip   int    // bytes of the next chunk that are not read
	rest   []byte // of the chunk before
	isLast bool   // that one was the last
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.isLast {
			return 0, io.EOF
		}
		chunk, err := r.chunks.get(r.ctx, r.chunks.subject(r.name, r.next))
		if err != nil {
			return 0, err
		}
		r.rest, r.isLast = chunk[min(r.skip, len(chunk)):], len(chunk) < chunkBytes
		r.next, r.skip = r.next+1, 0
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *chunkReader) Close() error { return nil }

// How often a chunk is asked for that a replica lacks, and the pause in between: it was acknowledged
// before its file was, and the replica may lag.
const (
	chunkTries = 20
	chunkPause = 50 * time.Millisecond
)

// get returns a chunk.
func (c *chunks) get(ctx context.Context, subject string) ([]byte, error) {
	for try := 1; ; try++ {
		m, err := c.stream.GetLastMsgForSubject(ctx, subject)
		switch {
		case err == nil:
			return m.Data, nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, unavailable(err)
		case try == chunkTries:
			return nil, fmt.Errorf("files: %w: chunk %s is missing", stream.ErrUnavailable, subject)
		}
		select {
		case <-time.After(chunkPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// unavailable marks an error of NATS as stream.ErrUnavailable; nil stays nil.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, stream.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("files: %w: %w", stream.ErrUnavailable, err)
}
