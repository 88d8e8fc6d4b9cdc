package api

import (
	"context"

	"github.com/gin-gonic/gin"
)

// Channels of decisions. The client itself tells its channel.
const (
	channelInput  = "input"     // resume, or tool messages, of an input
	channelHTTP   = "http"      // a route of its own
	channelSocket = "websocket" // a frame
	channelBatch  = "batch"
	channelLink   = "link"
	channelCLI    = "cli" // the command line, by headerChannel
)

// headerChannel is the header in which a client names its channel. Only channelCLI is accepted in it.
const headerChannel = "Perdure-Channel"

type channelKey struct{}

// through returns a context with the channel of a decision.
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
