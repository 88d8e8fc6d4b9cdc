package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/stream"
)

// name is the name of the JetStream stream; the log adds its own name as a prefix.
const name = "audit"

// Chain names a chain of entries: that of a tenant, or Platform.
type Chain struct{ token string } // of the tenant, see stream.Token; "" = Platform

// Platform is the chain of what belongs to no tenant: agents of the platform, the configuration of
// processes, and callers that are not authenticated.
var Platform = Chain{}

// OfTenant returns the chain of a tenant.
func OfTenant(tenant string) Chain { return Chain{stream.Token(tenant)} }

// key returns the chain as a token of the keys of buckets.
func (c Chain) key() string {
	if c == Platform {
		return "="
	}
	return strings.Replace(c.token, "~", "=", 1)
}

// Log is the JetStream stream with all chains. It is safe for concurrent use, and needs no closing:
// the stream.Log owns the connection.
type Log struct {
	js      jetstream.JetStream
	entries jetstream.Stream
	prefix  string // begins the subjects of chains
}

// Open opens the audit log, and creates it if it is missing. NATS refuses to delete single entries
// of it.
func Open(ctx context.Context, l *stream.Log) (*Log, error) {
	js, err := jetstream.New(l.Conn())
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	// Without AllowDirect, reads are answered by the leader: the writer must see the last block.
	entries, prefix, err := l.OwnStream(ctx, jetstream.StreamConfig{
		Name: name, Description: "Perdure: audit log", Storage: jetstream.FileStorage, DenyDelete: true, Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return nil, err
	}
	return &Log{js: js, entries: entries, prefix: prefix}, nil
}

// subject returns the subject of a chain.
func (l *Log) subject(c Chain) string {
	if c == Platform {
		return l.prefix + ".platform"
	}
	return l.tenants() + c.token
}

// tenants begins the subjects of the chains of tenants.
func (l *Log) tenants() string { return l.prefix + ".tenant." }

// block is one message: entries of one chain, one per line.
type block struct {
	seq  uint64 // of the JetStream stream
	raw  [][]byte
	data []byte
}

// decodeBlock returns the block of a message.
func decodeBlock(seq uint64, data []byte) block {
	b := block{seq: seq, data: data}
	for line := range strings.Lines(string(data)) {
		b.raw = append(b.raw, []byte(strings.TrimSuffix(line, "\n")))
	}
	return b
}

// last returns the last block of a chain; nil = the chain is empty.
func (l *Log) last(ctx context.Context, c Chain) (*block, error) {
	m, err := l.entries.GetLastMsgForSubject(ctx, l.subject(c))
	return blockOf(m, err)
}

// from returns the first block of a chain at or after a sequence of the stream; nil = there is none.
func (l *Log) from(ctx context.Context, c Chain, seq uint64) (*block, error) {
	m, err := l.entries.GetMsg(ctx, max(seq, 1), jetstream.WithGetMsgSubject(l.subject(c)))
	return blockOf(m, err)
}

// blockOf returns the block of a message that was read, and nil if there is no such message.
func blockOf(m *jetstream.RawStreamMsg, err error) (*block, error) {
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("audit: %w: %w", stream.ErrUnavailable, err)
	}
	b := decodeBlock(m.Sequence, m.Data)
	return &b, nil
}

// lastEntry returns the last entry of the block.
func (b *block) lastEntry() (*audit.Entry, error) { return audit.Decode(b.raw[len(b.raw)-1]) }
