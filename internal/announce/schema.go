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

func openSchemas(ctx context.Context, l *stream.Log) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: schemas, Description: "Perdure: schemas of tools' arguments by digest", Storage: jetstream.FileStorage,
	})
}

// storeSchemas puts schemas where apis find them, and returns what there is to say of their tools.
func storeSchemas(ctx context.Context, l *stream.Log, specs []tools.Spec) ([]Tool, error) {
	kv, err := openSchemas(ctx, l)
	if err != nil {
		return nil, err
	}
	announced := make([]Tool, len(specs))
	for i, s := range specs {
		announced[i].Name = s.Name
		if len(s.Parameters) == 0 {
			continue
		}
		sum := sha256.Sum256(s.Parameters)
		announced[i].Schema = hex.EncodeToString(sum[:16])
		if _, err := kv.Create(ctx, announced[i].Schema, s.Parameters); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, fmt.Errorf("announce: schema of %s: %w", s.Name, err)
		}
	}
	return announced, nil
}

// Check finds what is wrong with the arguments of a call, and where. Workers may differ while they are being
// replaced: it is enough that one takes them. No reason: nothing is wrong, as far as is known.
func (b *Board) Check(ctx context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error) {
	b.mu.Lock()
	workers := b.lookUp(tool)
	b.mu.Unlock()
	for _, w := range workers {
		schema, err := b.schema(ctx, w.Schema)
		if err != nil || schema == nil {
			return "", "", err
		}
		var wrong *tools.ArgumentsError
		if !errors.As(schema.Validate(arguments), &wrong) {
			return "", "", nil
		}
		pointer, reason = wrong.Problems[0].Pointer, wrong.Problems[0].Reason
	}
	return pointer, reason, nil
}

// Fits finds what is wrong with the answer to a tool's question, by the schema that came with it, and where. No
// reason: nothing is wrong.
func (b *Board) Fits(schema, answer json.RawMessage) (pointer, reason string, err error) {
	compiled, err := tools.CompileSchema(schema)
	if err != nil {
		return "", "", fmt.Errorf("announce: the schema of an answer: %w", err)
	}
	if wrong, ok := errors.AsType[*tools.ArgumentsError](compiled.ValidateValue(answer)); ok {
		return wrong.Problems[0].Pointer, wrong.Problems[0].Reason, nil
	}
	return "", "", nil
}

// schema is the one with a digest; nil = none is known.
func (b *Board) schema(ctx context.Context, digest string) (*tools.Schema, error) {
	if digest == "" {
		return nil, nil
	}
	if known, ok := b.known.Load(digest); ok {
		return known.(*tools.Schema), nil
	}
	entry, err := b.schemas.Get(ctx, digest)
	if errors.Is(err, jetstream.ErrKeyNotFound) { // this replica may not have it yet
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("announce: schema: %w: %w", stream.ErrUnavailable, err)
	}
	compiled, err := tools.CompileSchema(entry.Value())
	if err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	b.known.Store(digest, compiled)
	return compiled, nil
}
