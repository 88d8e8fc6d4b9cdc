package request

import (
	"context"

	"github.com/gin-gonic/gin"
)

// Channels are how decisions come. The log and the audit have them.
const (
	ChannelInput  = "input"     // resume, or tool messages, of an input
	ChannelHTTP   = "http"      // a route of its own
	ChannelSocket = "websocket" // a frame
	ChannelBatch  = "batch"
	ChannelLink   = "link"
	ChannelCLI    = "cli" // the command line, by headerChannel
)

// headerChannel is the header in which a client names its channel. Only ChannelCLI is accepted in
// it.
const headerChannel = "Perdure-Channel"

// channelKey is the key of a channel in a context.
type channelKey struct{}

// WithChannel returns a context with the channel of a decision.
func WithChannel(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

// ChannelIn returns the channel of a request: the one that the client names, or that of the route.
func ChannelIn(c *gin.Context, route string) string {
	if c.GetHeader(headerChannel) == ChannelCLI {
		return ChannelCLI
	}
	return route
}

// ChannelOf returns the channel of a context of WithChannel; ChannelHTTP without one.
func ChannelOf(ctx context.Context) string {
	if channel, ok := ctx.Value(channelKey{}).(string); ok {
		return channel
	}
	return ChannelHTTP
}
