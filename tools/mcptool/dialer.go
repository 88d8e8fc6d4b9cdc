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

// maxMessage bounds one message of a server's in bytes: a result with all the media that it may have.
const maxMessage = tools.MaxMedia + 4<<20

// dialer reaches a server.
type dialer interface {
	// dial begins a connection.
	dial(ctx context.Context) (*link, error)
	// explain says why a call came to no end.
	explain(err error) (egress.Failure, string)
	// redactor hides the secrets that the server is given.
	redactor() secrets.Redactor
}

// link is one connection to a server.
type link struct {
	transport mcp.Transport
	close     func() // ends it from below, so that nothing waits for the server any more
	release   func() // what remains to be done when it is over
}

// remote is a server at a URL.
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
