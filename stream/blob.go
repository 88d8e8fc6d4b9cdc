package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// MaxLine is the largest line a frame holds itself; a larger one lies in the object store and the
// frame has a reference to it.
const MaxLine = 128 << 10

// MaxFrame bounds the payload of a record.
const MaxFrame = 256 << 10

// reference stands for a line in the object store. Nothing else begins so: events begin with
// {"type": and results have members of their own.
type reference struct {
	Blob string `json:"$blob"`
}

var referencePrefix = []byte(`{"$blob":`)

func hasReference(lines [][]byte) bool {
	for _, line := range lines {
		if bytes.HasPrefix(line, referencePrefix) {
			return true
		}
	}
	return false
}

func (l *Log) ensureBlobs(ctx context.Context, o Options) (jetstream.ObjectStore, error) {
	name := l.name + "_blobs"
	store, err := l.js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		store, err = l.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: name, Description: "Perdure: events beyond the size of a frame, checkpoints", Storage: jetstream.FileStorage, Replicas: o.Replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stream: open %s: %w", name, err)
	}
	return store, nil
}

// shrink replaces a line that is too large by a reference. The name is the content's digest below
// the thread's name: written twice it is one blob, and a purge of the thread finds it.
func (l *Log) shrink(ctx context.Context, subject string, line []byte) ([]byte, error) {
	if len(line) <= MaxLine {
		return line, nil
	}
	thread, _, _, ok := splitSubject(subject)
	if !ok {
		return nil, fmt.Errorf("stream: %q is not a lane", subject)
	}
	name := fmt.Sprintf("%s.%x", thread, sha256.Sum256(line))
	if _, err := l.blobs.PutBytes(ctx, name, line); err != nil {
		return nil, fmt.Errorf("stream: store blob: %w", err)
	}
	return json.Marshal(reference{Blob: name})
}

func (l *Log) shrinkAll(ctx context.Context, subject string, lines [][]byte) ([][]byte, error) {
	for i, line := range lines {
		small, err := l.shrink(ctx, subject, line)
		if err != nil {
			return nil, err
		}
		lines[i] = small
	}
	return lines, nil
}

// loadBlobs returns the lines with every reference replaced by what it refers to.
func (l *Log) loadBlobs(ctx context.Context, lines [][]byte) ([][]byte, error) {
	loaded := make([][]byte, len(lines))
	for i, line := range lines {
		loaded[i] = line
		if !bytes.HasPrefix(line, referencePrefix) {
			continue
		}
		var ref reference
		if err := json.Unmarshal(line, &ref); err != nil {
			return nil, fmt.Errorf("stream: reference: %w", err)
		}
		data, err := l.blobs.GetBytes(ctx, ref.Blob)
		if err != nil {
			return nil, fmt.Errorf("stream: blob %s: %w", ref.Blob, err)
		}
		loaded[i] = data
	}
	return loaded, nil
}
