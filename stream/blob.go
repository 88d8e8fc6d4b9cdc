package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// MaxLine is the largest line a frame holds itself; a larger one lies in the object store and the
// frame has a reference to it.
const MaxLine = 128 << 10

// blobPatience is how long a blob may take to be read.
const blobPatience = 30 * time.Second

// MaxFrame bounds the payload of a record.
const MaxFrame = 256 << 10

// reference stands for a line in the object store. Nothing else begins so: events begin with
// {"type": and results have members of their own.
type reference struct {
	Blob string `json:"$blob"`
	Size int    `json:"size"`
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

// referred is the size of what the lines refer to.
func referred(lines [][]byte) int {
	size := 0
	for _, line := range lines {
		if !bytes.HasPrefix(line, referencePrefix) {
			continue
		}
		var ref reference
		if json.Unmarshal(line, &ref) == nil { // else reading it says so
			size += ref.Size
		}
	}
	return size
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
	if err := l.storeBlob(ctx, name, line); err != nil {
		return nil, fmt.Errorf("stream: store blob: %w", unreached(err))
	}
	return json.Marshal(reference{Blob: name, Size: len(line)})
}

// storeBlob stores a blob unless it is there: storing it again would take its chunks from under
// whoever is reading them. Like append it goes on through outages, until ctx ends.
func (l *Log) storeBlob(ctx context.Context, name string, data []byte) error {
	pause := firstPause
	for {
		_, err := l.blobs.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			_, err = l.blobs.PutBytes(ctx, name, data)
		}
		if err == nil || hopeless(err) {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
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
		data, err := l.loadBlob(ctx, ref.Blob)
		if err != nil {
			return nil, fmt.Errorf("stream: blob %s: %w", ref.Blob, unreached(err))
		}
		loaded[i] = data
	}
	return loaded, nil
}

// loadBlob reads a blob that a record refers to. It was acknowledged before the record was written,
// but the replica that is asked may not have it yet; only the leader knows that it is lost.
func (l *Log) loadBlob(ctx context.Context, name string) ([]byte, error) {
	for pause := firstPause; ; pause *= 2 {
		data, err := l.readBlob(ctx, name)
		if !errors.Is(err, jetstream.ErrObjectNotFound) {
			return data, err
		}
		switch there, err := l.hasBlob(ctx, name); {
		case err != nil:
			return nil, err
		case !there:
			return nil, ErrLogLost
		case pause > longestPause:
			return nil, errStale
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// readBlob reads a blob as a whole. Where ctx has no deadline the client library has one of 5 s of its own, however
// large the blob, and whoever reads on a slow line would never get it; where ctx has one it waits for that. It waits as long
// too when ctx is canceled in the middle of a blob, so a read that has begun is not canceled.
func (l *Log) readBlob(ctx context.Context, name string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	until := time.Now().Add(blobPatience)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(until) {
		until = earlier
	}
	reading, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	return l.blobs.GetBytes(reading, name)
}

// hasBlob asks the leader whether there is a blob (ADR-20 says where its description lies).
func (l *Log) hasBlob(ctx context.Context, name string) (bool, error) {
	subject := "$O." + l.name + "_blobs.M." + base64.URLEncoding.EncodeToString([]byte(name))
	m, err := l.askStream(ctx, "OBJ_"+l.name+"_blobs", getRequest{LastFor: subject})
	return m != nil, err
}
