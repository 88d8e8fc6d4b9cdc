package stream

import (
	"context"
	"fmt"
)

// Storage is what the log stores, and how much room it has.
type Storage struct {
	// Streams are the stream of the log, and the one with its large lines and checkpoints.
	Streams []StreamStorage
	// Bytes is what the account of NATS stores on disk, in all streams. MaxBytes is its limit; 0 = it
	// has none.
	Bytes, MaxBytes uint64
}

// StreamStorage is what one stream stores.
type StreamStorage struct {
	Name            string
	Messages, Bytes uint64
	MaxBytes        uint64 // 0 = unlimited
	// Replicas are the servers of NATS that have a copy, the leader first; empty = NATS is no cluster.
	Replicas []Replica
}

// Replica is a server of NATS with a copy of a stream.
type Replica struct {
	Server string
	Leader bool
	// Current reports that the copy is complete and its server is reachable.
	Current bool
}

// Storage returns what the log stores now. Errors: those of JetStream, wrapped.
func (l *Log) Storage(ctx context.Context) (*Storage, error) {
	storage := &Storage{}
	for _, name := range []string{l.name, "OBJ_" + l.name + "_blobs"} {
		s, err := l.js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("stream: storage of %s: %w", name, err)
		}
		info := s.CachedInfo()
		one := StreamStorage{Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: bound(info.Config.MaxBytes)}
		if info.Cluster != nil && info.Cluster.Name != "" {
			if info.Cluster.Leader != "" {
				one.Replicas = append(one.Replicas, Replica{Server: info.Cluster.Leader, Leader: true, Current: true})
			}
			for _, peer := range info.Cluster.Replicas {
				one.Replicas = append(one.Replicas, Replica{Server: peer.Name, Current: peer.Current && !peer.Offline})
			}
		}
		storage.Streams = append(storage.Streams, one)
	}
	account, err := l.js.AccountInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("stream: storage of the account: %w", err)
	}
	storage.Bytes, storage.MaxBytes = account.Store, bound(account.Limits.MaxStore)
	return storage, nil
}

// bound returns a limit of JetStream; 0 = unlimited.
func bound(limit int64) uint64 { return uint64(max(limit, 0)) } //nolint:gosec // not negative
