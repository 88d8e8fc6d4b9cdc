package api

import (
	"context"

	"github.com/gin-gonic/gin"
)

// Channels are the ways that a decision comes by. Which one it is is what the client says of itself.
const (
	channelInput  = "input"     // resume, or tool messages, of a run's input
	channelHTTP   = "http"      // a route of its own
	channelSocket = "websocket" // a frame
	channelBatch  = "batch"
	channelLink   = "link"
	channelCLI    = "cli" // the command line, which says so in headerChannel
)

// headerChannel is where a client names itself as a channel. Only channelCLI is taken from it.
const headerChannel = "Perdure-Channel"

type channelKey struct{}

// through returns a context that knows by which channel a decision comes.
func through(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

// channelIn is the channel of a request: the one that the client names, or that of the route.
func channelIn(c *gin.Context, route string) string {
	if c.GetHeader(headerChannel) == channelCLI {
		return channelCLI
	}
	return route
}

func channelOf(ctx context.Context) string {
	if channel, ok := ctx.Value(channelKey{}).(string); ok {
		return channel
	}
	return channelHTTP
}
