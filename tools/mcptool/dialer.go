package mcptool

import (
	"context"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/internal/secrets"
)

// maxMessage bounds one message of a server in bytes: a result with the most media, and 4 MiB.
const maxMessage = tools.MaxMedia + 4<<20

// dialer connects to a server.
type dialer interface {
	// dial opens a connection.
	dial(ctx context.Context) (*link, error)
	// explain returns why a call has no outcome.
	explain(err error) (egress.Failure, string)
	// redactor hides the server's secrets.
	redactor() secrets.Redactor
}

// link is a connection to a server.
type link struct {
	transport mcp.Transport
	close     func() // closes the transport, so that nothing waits for the server
	release   func() // releases resources after the end
}

// remote is a server with a URL.
type remote struct {
	endpoint  *url.URL
	transport *http.Transport
	client    *http.Client
	headers   secrets.Texts
	secret    secrets.Lookup
}

func (r *remote) dial(context.Context) (*link, error) {
	return &link{
		transport: &mcp.StreamableClientTransport{Endpoint: r.endpoint.String(), HTTPClient: r.client, MaxEventSize: maxMessage},
		close:     func() {}, // requests end with their contexts
		release:   r.transport.CloseIdleConnections,
	}, nil
}
