package request

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/auth"
)

// Channels are the ways in which a decision arrives. The log and the audit record them; they do not
// change what the caller may decide.
const (
	ChannelInput  = "input"     // resume, or tool messages, of an input
	ChannelHTTP   = "http"      // the route of an approval or a tool result
	ChannelSocket = "websocket" // a frame of a WebSocket
	ChannelBatch  = "batch"     // the route of a batch
	ChannelLink   = "link"      // a link that decides
	ChannelCLI    = "cli"       // the command line, which sends headerChannel
)

// headerChannel is the header in which a client names its channel. It is not authenticated, so only
// ChannelCLI is accepted in it; other values are ignored.
const headerChannel = "Perdure-Channel"

// channelKey is the context key of the channel.
type channelKey struct{}

// WithChannel returns a context with the channel of a decision, for ChannelOf.
func WithChannel(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

// Link is the link by which a decision arrives.
type Link struct {
	// Issuer created the link. It has no roles, because those of the past have no effect.
	Issuer auth.Principal
	// NamesApprover tells that the link decides for everyone who has its URL, which the issuer has.
	NamesApprover bool
}

// linkKey is the context key of the link.
type linkKey struct{}

// WithLink returns a context of a decision by a link, for LinkOf. Its channel is ChannelLink.
func WithLink(ctx context.Context, l Link) context.Context {
	return context.WithValue(WithChannel(ctx, ChannelLink), linkKey{}, l)
}

// LinkOf returns the link of WithLink; ok is false if the decision has another channel.
func LinkOf(ctx context.Context) (l Link, ok bool) {
	l, ok = ctx.Value(linkKey{}).(Link)
	return l, ok
}

// ChannelIn returns the channel of a request: the one in headerChannel, or else that of the route.
func ChannelIn(c *gin.Context, route string) string {
	if c.GetHeader(headerChannel) == ChannelCLI {
		return ChannelCLI
	}
	return route
}

// ChannelOf returns the channel that WithChannel has put into the context; ChannelHTTP without one.
func ChannelOf(ctx context.Context) string {
	if channel, ok := ctx.Value(channelKey{}).(string); ok {
		return channel
	}
	return ChannelHTTP
}
