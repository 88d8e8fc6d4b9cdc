package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options configure a Log. The zero value is the embedded default. Replicas and MaxBytes take
// effect only when Open creates the stream or a bucket: Open never changes an existing one.
type Options struct {
	// Stream is the JetStream stream's name and, in lower case, the first token of its subjects;
	// blobs, checkpoints and agents live in buckets whose names begin with it. Defaults to
	// "PERDURE".
	Stream string
	// Replicas is the number of copies of the stream and of each bucket, 1 to 5. Defaults to 1.
	Replicas int
	// MaxBytes bounds the stream's size in bytes. A full stream refuses writes, and runs wait until
	// there is room. 0 = no bound.
	MaxBytes int64
	// Cipher opens the encryption of the log, which Open calls with the log. nil = the log stores
	// everything as it is, and cannot read what is encrypted.
	Cipher func(context.Context, *Log) (Cipher, error)
}

// withDefaults returns the options with the defaults in place of zero values.
func (o Options) withDefaults() Options {
	if o.Stream == "" {
		o.Stream = "PERDURE"
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	return o
}

// Log is the event log: one JetStream stream, and the buckets that belong to it. It is immutable
// after Open and safe for concurrent use. It owns no goroutine and needs no Close; the caller owns
// the connection.
type Log struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	name     string                // the stream's name
	prefix   string                // the first token of every subject: the name in lower case
	epoch    string                // identifies this log in cursors; see epochKey
	replicas int                   // of buckets that are created
	blobs    jetstream.ObjectStore // lines beyond MaxLine, and checkpoints (blob.go)
	// onlyServer is the name of the server that had the only copy of the log when it was opened; "" =
	// the log was in a cluster (get.go).
	onlyServer string
	// Ready writes probeRecord to probe, to see whether the server has room.
	probe       jetstream.KeyValue
	probeRecord []byte
	index       jetstream.KeyValue // the list of threads (index.go)
	cipher      Cipher             // nil = nothing is encrypted (encryption.go)
}

// epochKey is the key of the epoch in the stream's metadata. The epoch is random, created with the
// stream and kept by backups, so ParseCursor recognizes a cursor of another log.
const epochKey = "perdure.epoch"

// Open opens the log and creates the stream and the buckets that are missing. Several processes may
// call it concurrently. It fails if the NATS server is older than 2.12, or if a stream with this
// name exists that Perdure did not create.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*Log, error) {
	o = o.withDefaults()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	l := &Log{nc: nc, js: js, name: o.Stream, prefix: strings.ToLower(o.Stream), replicas: o.Replicas, probeRecord: newProbeRecord()}
	info, err := l.ensureStream(ctx, o)
	if err != nil {
		return nil, err
	}
	l.epoch, l.onlyServer = info.Config.Metadata[epochKey], onlyServerOf(nc, info)
	if l.blobs, err = l.ensureBlobs(ctx, o); err != nil {
		return nil, err
	}
	probe := jetstream.KeyValueConfig{Bucket: "ready", Description: "Perdure: probe of writes to the log", Storage: jetstream.FileStorage}
	if l.probe, err = l.KeyValue(ctx, probe); err != nil {
		return nil, err
	}
	if l.index, err = l.ensureIndex(ctx); err != nil {
		return nil, err
	}
	if o.Cipher != nil {
		if l.cipher, err = o.Cipher(ctx, l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// ensureStream creates or finds the stream, and returns what JetStream tells of it. If two processes
// create the stream concurrently, both return the one that JetStream has accepted.
//
// The stream has no age limit, and refuses new records when it is full (DiscardNew). If it
// discarded old records instead, a lane in use would accept expected sequence 0 again, and parked
// threads would lose their first records.
func (l *Log) ensureStream(ctx context.Context, o Options) (*jetstream.StreamInfo, error) {
	cfg := jetstream.StreamConfig{
		Name:        l.name,
		Description: "Perdure: events of all runs",
		Subjects:    []string{l.prefix + ".>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    o.MaxBytes,
		Replicas:    o.Replicas,
		AllowDirect: true,
		DenyDelete:  false,
		Duplicates:  100 * time.Millisecond, // the server's minimum; no message has an ID, because the fence deduplicates
		Metadata:    map[string]string{epochKey: strings.ToLower(rand.Text())[:8]},

		AllowAtomicPublish: true, // for marks (ADR-50)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = -1
	}
	s, err := l.js.Stream(ctx, l.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = l.js.CreateStream(ctx, cfg)
		if err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
			s, err = l.js.Stream(ctx, l.name) // the answer to the creation lacks the servers
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stream: open %s: %w", l.name, err)
	}
	info := s.CachedInfo()
	if !info.Config.AllowAtomicPublish { // servers before 2.12 ignore the member
		return nil, fmt.Errorf("stream: the NATS server at %s (version %s) has no atomic batches for %s: use NATS 2.12 or later",
			l.nc.ConnectedUrlRedacted(), l.nc.ConnectedServerVersion(), l.name)
	}
	if info.Config.Metadata[epochKey] == "" {
		return nil, fmt.Errorf("stream: %s exists but is not a log of Perdure: its metadata has no %s", l.name, epochKey)
	}
	return info, nil
}

// Epoch returns the random name of this log. Cursors carry it.
func (l *Log) Epoch() string { return l.epoch }

// ErrFull tells that the log answers, but has no room. Writers wait and continue when it has room
// again.
var ErrFull = errors.New("stream: the log is full")

// Ready checks that the log answers and takes writes. The error is ErrFull if the log has no room,
// and any other error if it does not answer before ctx ends. A full stream still takes records that
// fit, so Ready compares the stream's size with its bound. A write to a bucket shows whether the
// server has room.
func (l *Log) Ready(ctx context.Context) error {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if bound := s.CachedInfo().Config.MaxBytes; bound > 0 && s.CachedInfo().State.Bytes+MaxFrame > uint64(bound) {
		return fmt.Errorf("%w: less than one frame of %d bytes is free", ErrFull, MaxFrame)
	}
	_, err = l.probe.Put(ctx, "ready", l.probeRecord)
	var api *jetstream.APIError
	if errors.As(err, &api) && slices.Contains(codesNoRoom, api.ErrorCode) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("stream: write: %w", err)
	}
	return nil
}

// probeBytes is the size of the record that Ready writes. The record must not fit into the rest of a
// page that the file of the bucket has already: on a full disk, dozens of small records would.
const probeBytes = 16 << 10

// newProbeRecord returns a record of probeBytes, random so that no file system compresses it.
func newProbeRecord() []byte {
	record := make([]byte, probeBytes)
	_, _ = rand.Read(record) // never fails
	return record
}

// codesNoRoom are JetStream's error codes for a lack of room: 10002 = the account's limits, 10023 =
// the server's resources, 10047 = the server's storage (errors.json of nats-server).
var codesNoRoom = []jetstream.ErrorCode{10002, 10023, 10047}

// Blobs returns the object store that holds lines beyond MaxLine, and the checkpoints of snapshots.
func (l *Log) Blobs() jetstream.ObjectStore { return l.blobs }

// Conn returns the connection that the log uses. Its owner closes it, not the caller of Conn.
func (l *Log) Conn() *nats.Conn { return l.nc }

// OwnStream opens a further stream of the log, and creates it with cfg and the log's number of
// replicas if it is missing. The stream's name is cfg.Name after the log's name, and its subjects
// are those below prefix. An existing stream keeps its configuration.
func (l *Log) OwnStream(ctx context.Context, cfg jetstream.StreamConfig) (s jetstream.Stream, prefix string, err error) {
	prefix = l.prefix + "_" + cfg.Name // not below l.prefix, whose subjects are those of the log
	cfg.Name, cfg.Replicas, cfg.Subjects = l.name+"_"+cfg.Name, l.replicas, []string{prefix + ".>"}
	s, err = l.js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = l.js.CreateStream(ctx, cfg) // needs no permission to change streams
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = l.js.Stream(ctx, cfg.Name)
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("stream: open %s: %w", cfg.Name, err)
	}
	return s, prefix, nil
}

// ErasableBucket opens the bucket with a name, and creates it if it is missing. Unlike other buckets,
// its messages can be deleted one by one (jetstream.Stream.SecureDeleteMsg). It keeps two values of a
// key, so that a writer can erase the value that it has replaced: the server only forgets it.
func (l *Log) ErasableBucket(ctx context.Context, name, description string) (jetstream.KeyValue, error) {
	bucket := l.name + "_" + name
	cfg := jetstream.StreamConfig{
		Name: "KV_" + bucket, Description: description, Subjects: []string{"$KV." + bucket + ".>"},
		MaxMsgsPerSubject: 2, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: l.replicas,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		AllowRollup: true, AllowDirect: true, AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerTTL,
	}
	_, err := l.js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = l.js.CreateStream(ctx, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stream: bucket %s: %w", bucket, err)
	}
	kv, err := l.js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("stream: bucket %s: %w", bucket, err)
	}
	return kv, nil
}

// HasEntries reports whether the log has a bucket with a name that has entries.
func (l *Log) HasEntries(ctx context.Context, name string) (bool, error) {
	s, err := l.js.Stream(ctx, "KV_"+l.name+"_"+name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stream: bucket %s: %w", name, err)
	}
	return s.CachedInfo().State.Msgs > 0, nil
}

// KeyValue opens a bucket of the log, and creates it with cfg and the log's number of replicas if
// it is missing. The bucket's name is cfg.Bucket after the stream's name. An existing bucket keeps
// its configuration.
func (l *Log) KeyValue(ctx context.Context, cfg jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	cfg.Bucket, cfg.Replicas = l.name+"_"+cfg.Bucket, l.replicas
	kv, err := l.js.KeyValue(ctx, cfg.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = l.js.CreateKeyValue(ctx, cfg) // needs no permission to change buckets
	}
	if err != nil {
		return nil, fmt.Errorf("stream: bucket %s: %w", cfg.Bucket, err)
	}
	return kv, nil
}
