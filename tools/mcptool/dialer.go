package mcptool

import (
	"context"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools"
)

// maxMessage is the maximum size of a server's message, in bytes: a result with the maximum of
// media, and 4 MiB for the rest.
const maxMessage = tools.MaxMedia + 4<<20

// dialer connects to a server. Its methods are safe for concurrent use.
type dialer interface {
	// dial opens a connection. The caller must call close and release of the link, in this order.
	dial(ctx context.Context) (*link, error)
	// explain classifies the error of a call that got no result, with a text for the model that
	// contains neither addresses nor secrets.
	explain(err error) (egress.Failure, string)
	// redactor returns a Redactor for the secrets that the server was sent.
	redactor() secrets.Redactor
	// isOutdated reports that secrets have changed since the last dial, and that only another dial
	// can send them to the server.
	isOutdated() bool
}

// link is a connection to a server.
type link struct {
	transport mcp.Transport
	close     func() // closes the transport, so that nothing waits for the server
	release   func() // releases resources, after the session has ended
}

// remote is the [dialer] of a server with a URL. It is immutable.
type remote struct {
	endpoint  *url.URL
	transport *http.Transport // base of client, for closing idle connections
	client    *http.Client
	headers   secrets.Texts // without the secrets filled in
	secret    secrets.Lookup
}

// dial implements [dialer]. Streamable HTTP has no connection of its own: each message is a
// request.
func (r *remote) dial(context.Context) (*link, error) {
	return &link{
		transport: &mcp.StreamableClientTransport{Endpoint: r.endpoint.String(), HTTPClient: r.client, MaxEventSize: maxMessage},
		close:     func() {}, // requests end with their contexts
		release:   r.transport.CloseIdleConnections,
	}, nil
}
