package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/durations"
)

// This file stores lines that are too large for a record as blobs in a NATS object store (ADR-20),
// and loads them again. A blob is written before the record that refers to it.

// MaxLine is the largest line that a record holds itself, in bytes. A larger one is a blob in the
// object store, and the record has a reference to it.
const MaxLine = 128 << 10

// blobTimeout bounds the reading of one blob.
const blobTimeout = 30 * time.Second

// MaxFrame bounds the payload of the records of an attempt, in bytes. The log counts as full when
// less than this is left.
const MaxFrame = 256 << 10

// reference stands in a record for a line in the object store: the blob's name and size in bytes.
// No other line begins like it: events begin with {"type": and results have other members.
type reference struct {
	Blob string `json:"$blob"`
	Size int    `json:"size"`
}

var referencePrefix = []byte(`{"$blob":`)

// hasReference reports whether one of the lines is a reference.
func hasReference(lines [][]byte) bool {
	for _, line := range lines {
		if bytes.HasPrefix(line, referencePrefix) {
			return true
		}
	}
	return false
}

// referredSize returns the sum of the sizes of the blobs that the lines refer to, without reading
// them.
func referredSize(lines [][]byte) int {
	size := 0
	for _, line := range lines {
		if !bytes.HasPrefix(line, referencePrefix) {
			continue
		}
		var ref reference
		if json.Unmarshal(line, &ref) == nil { // reading the blob reports the error
			size += ref.Size
		}
	}
	return size
}

// ensureBlobs opens the object store, and creates it if it is missing.
func (l *Log) ensureBlobs(ctx context.Context, o Options) (jetstream.ObjectStore, error) {
	name := l.name + "_blobs"
	store, err := l.js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		store, err = l.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: name, Description: "Perdure: large events, checkpoints", Storage: jetstream.FileStorage, Replicas: o.Replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("stream: open %s: %w", name, err)
	}
	return store, nil
}

// shrink stores a line that is too large as a blob, and returns a reference to it. Other lines are
// returned as they are.
func (l *Log) shrink(ctx context.Context, subject string, line []byte) ([]byte, error) {
	if len(line) <= MaxLine {
		return line, nil
	}
	return l.storeLine(ctx, subject, line)
}

// storeLine stores a line as a blob, and returns a reference to it. The blob's name is the thread's
// subject and the digest of the line: the same line written twice is one blob, and never belongs to
// two threads.
//
// If the record is not written after that, for instance because its writer is fenced, no record
// refers to the blob. Purge finds such a blob by its key in the index, see blobKey.
func (l *Log) storeLine(ctx context.Context, subject string, line []byte) ([]byte, error) {
	thread, _, _, ok := splitSubject(subject)
	if !ok {
		return nil, fmt.Errorf("stream: %q is not a lane", subject)
	}
	return l.storeLineAs(ctx, thread, fmt.Sprintf("%x", sha256.Sum256(line)), line)
}

// shrinkProposal is shrink for a proposal. Its blob belongs to it alone, so that it can be withdrawn:
// the blob's name depends also on the lane, and on the record that the proposal follows.
func (l *Log) shrinkProposal(ctx context.Context, subject string, after uint64, line []byte) ([]byte, error) {
	thread, _, _, ok := splitSubject(subject)
	if len(line) <= MaxLine || !ok {
		return l.shrink(ctx, subject, line)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %d ", subject, after) // a hash does not fail
	_, _ = h.Write(line)
	return l.storeLineAs(ctx, thread, fmt.Sprintf("%x", h.Sum(nil)), line)
}

// storeLineAs stores a line as the blob of a thread with a digest, and returns a reference to it.
func (l *Log) storeLineAs(ctx context.Context, thread, digest string, line []byte) ([]byte, error) {
	name := thread + "." + digest
	stored, err := l.encryptObject(ctx, thread, name, line)
	if err != nil {
		return nil, err
	}
	if err := l.storeBlob(ctx, l.blobKey(thread, digest), name, stored); err != nil {
		return nil, fmt.Errorf("stream: store blob: %w", asUnavailable(err))
	}
	return json.Marshal(reference{Blob: name, Size: len(line)})
}

// blobPrefix begins the keys of blobs in the bucket of the index: tenant, thread and digest follow,
// each a token. An object store cannot list the objects of one thread, because a name is a single
// token of its subject. The value of a key is the name of the blob.
const blobPrefix = "blob."

// blobKey returns the key of a blob in the index. With the digest "*" it matches all blobs of the
// thread.
func (l *Log) blobKey(threadSubject, digest string) string {
	return blobPrefix + IndexToken(strings.TrimPrefix(threadSubject, l.prefix+".")) + "." + digest
}

// storeBlob stores a blob unless it exists: storing it again would remove the chunks that a reader
// is reading. It writes the key in the index first, so that no blob is without one. Like append it
// retries during outages, until ctx ends.
func (l *Log) storeBlob(ctx context.Context, key, name string, data []byte) error {
	pause := firstPause
	for {
		_, err := l.blobs.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			if _, err = l.index.PutString(ctx, key, name); err == nil {
				_, err = l.blobs.PutBytes(ctx, name, data)
			}
		}
		if err == nil || isPermanent(err) {
			return err
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// shrinkAll shrinks every line, in place, and then stores the largest ones as blobs, too, until all
// of them take at most room bytes.
func (l *Log) shrinkAll(ctx context.Context, subject string, lines [][]byte, room int) ([][]byte, error) {
	size := 0
	for i, line := range lines {
		small, err := l.shrink(ctx, subject, line)
		if err != nil {
			return nil, err
		}
		lines[i] = small
		size += len(small) + 1
	}
	for size > room {
		largest := 0
		for i, line := range lines {
			if len(line) > len(lines[largest]) {
				largest = i
			}
		}
		line := lines[largest]
		if bytes.HasPrefix(line, referencePrefix) {
			break // the others are shorter than a reference
		}
		small, err := l.storeLine(ctx, subject, line)
		if err != nil {
			return nil, err
		}
		lines[largest] = small
		size += len(small) - len(line)
	}
	return lines, nil
}

// loadBlobs returns the lines of a thread, by its subject, with blobs in place of references.
func (l *Log) loadBlobs(ctx context.Context, threadSubject string, lines [][]byte) ([][]byte, error) {
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
			return nil, fmt.Errorf("stream: blob %s: %w", ref.Blob, asUnavailable(err))
		}
		if data, err = l.decryptObject(ctx, threadSubject, ref.Blob, data); err != nil {
			return nil, fmt.Errorf("stream: decrypt blob %s: %w", ref.Blob, err)
		}
		loaded[i] = data
	}
	return loaded, nil
}

// loadBlob reads a blob that a record refers to. The blob was acknowledged before the record was
// written. A replica may not have it yet (errReplicaLags); only the leader knows that it is lost
// (ErrLogLost).
func (l *Log) loadBlob(ctx context.Context, name string) ([]byte, error) {
	for pause := firstPause; ; pause *= 2 {
		data, err := l.readBlob(ctx, name)
		if !errors.Is(err, jetstream.ErrObjectNotFound) {
			return data, err
		}
		switch exists, err := l.hasBlob(ctx, name); {
		case err != nil:
			return nil, err
		case !exists:
			return nil, ErrLogLost
		case pause > longestPause:
			return nil, errReplicaLags
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// readBlob reads a whole blob. Without a deadline of ctx the client library would give up after 5
// s, which is too early on a slow network. If ctx is canceled in the middle of a blob the library
// waits for that deadline too, so a read that has begun is not canceled.
func (l *Log) readBlob(ctx context.Context, name string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	deadline := time.Now().Add(blobTimeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	readCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return l.blobs.GetBytes(readCtx, name)
}

// hasBlob asks the leader whether a blob exists (ADR-20 defines the subject of its description).
func (l *Log) hasBlob(ctx context.Context, name string) (bool, error) {
	subject := "$O." + l.name + "_blobs.M." + base64.URLEncoding.EncodeToString([]byte(name))
	m, err := l.askStream(ctx, "OBJ_"+l.name+"_blobs", getRequest{LastFor: subject})
	return m != nil, err
}
