package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Channels by which decisions come.
const (
	channelAGUI  = "agui" // with an input
	channelREST  = "rest"
	channelBatch = "batch"
	channelLink  = "link"
)

type channelKey struct{}

// through returns a context that knows by which channel a decision comes.
func through(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

func channelOf(ctx context.Context) string {
	if channel, ok := ctx.Value(channelKey{}).(string); ok {
		return channel
	}
	return channelREST
}

// digestOf adds to a decision who says it and by which channel, and returns the digest by which decisions are
// compared. The same by the same person is the same, with whatever roles and wherever it comes from.
func digestOf(ctx context.Context, said *stream.Decision) ([32]byte, error) {
	if p, ok := auth.From(ctx); ok {
		said.By = &auth.Principal{Tenant: p.Tenant, Subject: p.Subject}
	}
	body, err := json.Marshal(said)
	if err != nil {
		return [32]byte{}, fmt.Errorf("api: encode decision: %w", err)
	}
	if p, ok := auth.From(ctx); ok {
		said.By = &p
	}
	said.Channel = channelOf(ctx)
	return sha256.Sum256(body), nil
}
