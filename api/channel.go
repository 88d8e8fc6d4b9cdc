package api

import "context"

// More channels.
const (
	channelBatch  = "batch"
	channelLink   = "link"
	channelSocket = "ws"
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
