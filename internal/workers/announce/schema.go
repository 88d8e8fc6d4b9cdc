package announce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// openSchemas opens the bucket of schemas and descriptions. It has no TTL: values never change, and
// equal texts are stored once.
func openSchemas(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: schemaBucket, Description: "Perdure: schemas of tools' arguments by digest", Storage: jetstream.FileStorage,
	})
}

// schemaStore stores schemas and descriptions under their digests. It is not safe for concurrent
// use.
type schemaStore struct {
	kv     jetstream.KeyValue
	stored map[string]bool // digests that this process has stored
}

// describe returns the announcement of a tool, and stores its schema. For a tool of an MCP server
// it also stores the description.
func (s *schemaStore) describe(ctx context.Context, o Offer) (Tool, error) {
	t := Tool{Name: o.Spec.Name, Queue: o.Spec.TaskQueue, Server: o.Server, Own: o.Own}
	var err error
	if len(o.Spec.Parameters) > 0 {
		if t.Schema, err = s.put(ctx, o.Spec.Parameters); err != nil {
			return t, fmt.Errorf("announce: schema of %s: %w", t.Name, err)
		}
	}
	if t.Server == "" {
		return t, nil
	}
	spec, err := json.Marshal(o.Spec)
	if err == nil {
		t.Spec, err = s.put(ctx, spec)
	}
	if err != nil {
		return t, fmt.Errorf("announce: description of %s: %w", t.Name, err)
	}
	return t, nil
}

// put stores a text unless the bucket has it, and returns its digest: 128 bits of SHA-256 in
// hexadecimal.
func (s *schemaStore) put(ctx context.Context, text []byte) (string, error) {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:16])
	if s.stored[digest] {
		return digest, nil
	}
	if _, err := s.kv.Create(ctx, digest, text); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return "", err
	}
	s.stored[digest] = true
	return digest, nil
}

// Check validates the arguments of a call. While workers are replaced, their schemas of a tool may
// differ: the arguments are valid if one of them accepts them. An empty reason means valid, or that
// no schema is known. Otherwise pointer is a JSON pointer into the arguments. Errors:
// stream.ErrUnavailable.
func (b *Board) Check(ctx context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error) {
	for _, w := range b.find(func(t Tool) bool { return t.Name == tool }) {
		schema, err := b.schema(ctx, w.Schema)
		if err != nil || schema == nil {
			return "", "", err
		}
		var argsErr *tools.ArgumentsError
		if !errors.As(schema.Validate(arguments), &argsErr) {
			return "", "", nil
		}
		pointer, reason = argsErr.Problems[0].Pointer, argsErr.Problems[0].Reason
	}
	return pointer, reason, nil
}

// Fits validates the answer to a question against the question's schema. An empty reason means
// valid. Otherwise pointer is a JSON pointer into the answer. It fails if the schema is invalid.
func (b *Board) Fits(schema, answer json.RawMessage) (pointer, reason string, err error) {
	compiled, err := tools.CompileSchema(schema)
	if err != nil {
		return "", "", fmt.Errorf("announce: the schema of an answer: %w", err)
	}
	if argsErr, ok := errors.AsType[*tools.ArgumentsError](compiled.ValidateValue(answer)); ok {
		return argsErr.Problems[0].Pointer, argsErr.Problems[0].Reason, nil
	}
	return "", "", nil
}

// schema returns the compiled schema with a digest, from memory or the bucket; nil = none is known.
func (b *Board) schema(ctx context.Context, digest string) (*tools.Schema, error) {
	if digest == "" {
		return nil, nil
	}
	if cached, ok := b.compiled.Load(digest); ok {
		return cached.(*tools.Schema), nil
	}
	entry, err := b.schemas.Get(ctx, digest)
	if errors.Is(err, jetstream.ErrKeyNotFound) { // the replica that answers may lag
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("announce: schema: %w: %w", stream.ErrUnavailable, err)
	}
	compiled, err := tools.CompileSchema(entry.Value())
	if err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	b.compiled.Store(digest, compiled)
	return compiled, nil
}
