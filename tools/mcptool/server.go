package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
)

// Timeouts and pauses of a connection.
const (
	connectTimeout = 30 * time.Second
	listTimeout    = 30 * time.Second
	// listPause is the minimum time between two lists, however often the server reports changes.
	listPause = time.Second
	// longestPause is the maximum pause between two attempts to connect. A connection that lasted
	// longer resets the back-off.
	longestPause = 30 * time.Second
)

// Server is a connection to an MCP server, with its tools. It implements [tools.Source]. [Start]
// creates it; its owner ends it with Stop. A goroutine keeps it connected in between. It is safe
// for concurrent use.
type Server struct {
	cfg     Config
	sign    func(assertion.Subject) (string, error) // nil = calls have no assertion
	dialer  dialer
	logger  *slog.Logger
	life    context.Context    // ends with Stop
	end     context.CancelFunc // ends life
	done    chan struct{}      // closed when the goroutine has ended
	changed chan struct{}      // holds at most one notice of tools/list_changed
	renewal renewal

	// mu guards the fields below it, up to asker.
	mu       sync.Mutex
	session  *mcp.ClientSession   // nil while disconnected
	offers   []tools.Offer        // last list of tools
	isListed bool                 // a list has been received
	next     int                  // number of the next progress token
	watched  map[string]*progress // progress of active calls, by token
	asker    *asker               // call that may elicit, see alone; nil = none

	turn chan struct{} // semaphore of one, held by the call in asker
}

// Start connects in the background, and reconnects until Stop. It does not wait for the connection.
// The error is a *ConfigError; an unavailable server is no error.
func Start(cfg Config, env Environment) (*Server, error) {
	d, err := cfg.dialer(env)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, sign: env.Sign, dialer: d, logger: env.Logger.With("server", cfg.Name),
		done: make(chan struct{}), changed: make(chan struct{}, 1), renewal: renewal{requested: make(chan struct{}, 1)}, watched: map[string]*progress{}, turn: make(chan struct{}, 1),
	}
	s.life, s.end = context.WithCancel(context.Background())
	go s.run()
	return s, nil
}

// Stop ends the connection and the program of the server, and waits for them. Active calls return
// an error. Offers keeps returning the last list.
func (s *Server) Stop() {
	s.end()
	<-s.done
}

// Name implements [tools.Source].
func (s *Server) Name() string { return s.cfg.Name }

// Origin implements [tools.Source].
func (s *Server) Origin() string { return s.cfg.Origin }

// errUnknown is the error of Offers before the first list.
var errUnknown = errors.New("the server was not reached yet, so its tools are unknown")

// Offers implements [tools.Source]. It does not block.
func (s *Server) Offers() ([]tools.Offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isListed {
		return nil, errUnknown
	}
	return s.offers, nil
}

// run keeps the server connected until Stop, with exponential back-off.
func (s *Server) run() {
	defer close(s.done)
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = longestPause
	for s.life.Err() == nil {
		start := time.Now()
		err := s.serve()
		if errors.Is(err, errOutdated) {
			continue
		}
		s.failRenewal() // calls do not wait for the back-off
		if time.Since(start) > longestPause {
			pace.Reset()
		}
		wait := pace.NextBackOff()
		if s.life.Err() == nil {
			s.logger.WarnContext(s.life, "MCP server is not connected", "error", s.secrets().Text(err.Error()), "retry_in", wait.String())
		}
		pause(s.life, wait)
	}
}

// serve opens a connection, and serves it until it ends. It always returns an error: why the
// connection ended.
func (s *Server) serve() error {
	ctx, cancel := context.WithTimeout(s.life, connectTimeout)
	defer cancel()
	link, err := s.dialer.dial(ctx)
	if err != nil {
		return err
	}
	session, err := s.client().Connect(ctx, link.transport, nil)
	if err != nil {
		link.close()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	err = s.attend(session, ended)
	s.attach(nil)
	// The transport is closed first: closing the session could wait for an unresponsive server.
	link.close()
	_ = session.Close()
	link.release()
	return err
}

// attend lists the tools, and lists them again after each change, until the session ends. ended
// receives the result of the session's Wait.
func (s *Server) attend(session *mcp.ClientSession, ended <-chan error) error {
	for isFirst := true; ; isFirst = false {
		if err := s.list(session); err != nil {
			return fmt.Errorf("list the tools: %w", err)
		}
		if isFirst { // calls can be made only after the first list
			s.attach(session)
		}
		pause(s.life, listPause)
		select {
		case err := <-ended:
			return errors.Join(errors.New("the connection has ended"), err)
		case <-s.life.Done():
			return s.life.Err()
		case <-s.renewal.requested:
			return errors.Join(errOutdated, s.awaitCalls(ended))
		case <-s.changed:
		}
	}
}

// attach sets the session that calls use; nil = disconnected.
func (s *Server) attach(session *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != nil && s.session == nil {
		s.logger.InfoContext(s.life, "MCP server is connected", "tools", len(s.offers))
	}
	s.session = session
	if session != nil {
		s.renewal.end()
	}
}

// client returns a new MCP client. It declares no capability except for elicitation, if that is
// permitted.
func (s *Server) client() *mcp.Client {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		// The SDK's messages can contain content of calls, and calls return its errors.
		Logger: slog.New(slog.DiscardHandler),
		// The type rounds handles questions, not the SDK.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { s.noteProgress(req.Params) },
	}
	s.elicitation(options)
	return mcp.NewClient(&mcp.Implementation{Name: "perdure", Version: "1"}, options)
}

// secrets returns the Redactor of the server's secrets.
func (s *Server) secrets() secrets.Redactor {
	return s.dialer.redactor()
}

// pause blocks for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
