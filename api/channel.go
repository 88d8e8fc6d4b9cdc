package api

import (
	"context"

	"github.com/perdure/perdure/internal/auth"
)

// More channels.
const (
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

// caller is who calls; where callers are not told apart, nobody in particular.
func caller(ctx context.Context) auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return p
	}
	return auth.Principal{Tenant: auth.TenantDefault}
}
