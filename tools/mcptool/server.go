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

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/internal/secrets"
)

const (
	connectTimeout = 30 * time.Second
	listTimeout    = 30 * time.Second
	// listPause is the least time between two lists, however often the server reports changes.
	listPause    = time.Second
	longestPause = 30 * time.Second
)

// Server is an MCP server and its tools, a [tools.Source]. It is safe for concurrent use.
type Server struct {
	cfg     Config
	dialer  dialer
	logger  *slog.Logger
	life    context.Context // ends with Stop
	end     context.CancelFunc
	done    chan struct{}
	changed chan struct{} // holds at most one notice that the list of tools has changed

	mu      sync.Mutex
	session *mcp.ClientSession // nil while the server is away
	offers  []tools.Offer
	known   bool
	next    int // number of the next call
	watched map[string]*progress
	asker   *asker // the one call that the server may ask in

	turn chan struct{} // held by that call
}

// Start connects in the background, and reconnects until Stop. The error is a *ConfigError; an
// unavailable server is no error.
func Start(cfg Config, env Environment) (*Server, error) {
	d, err := cfg.dialer(env)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, dialer: d, logger: env.Logger.With("server", cfg.Name),
		done: make(chan struct{}), changed: make(chan struct{}, 1), watched: map[string]*progress{}, turn: make(chan struct{}, 1),
	}
	s.life, s.end = context.WithCancel(context.Background())
	go s.run()
	return s, nil
}

// Stop ends the connection, active calls and the program, and waits for them.
func (s *Server) Stop() {
	s.end()
	<-s.done
}

// Name implements [tools.Source].
func (s *Server) Name() string { return s.cfg.Name }

// Origin implements [tools.Source].
func (s *Server) Origin() string { return s.cfg.Origin }

var errUnknown = errors.New("the server has not been reached yet, so that its tools are unknown")

// Offers implements [tools.Source].
func (s *Server) Offers() ([]tools.Offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return nil, errUnknown
	}
	return s.offers, nil
}

// run connects again and again until Stop.
func (s *Server) run() {
	defer close(s.done)
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = longestPause
	for s.life.Err() == nil {
		began := time.Now()
		err := s.serve()
		if time.Since(began) > longestPause {
			pace.Reset()
		}
		wait := pace.NextBackOff()
		if s.life.Err() == nil {
			s.logger.WarnContext(s.life, "MCP server is away", "error", s.secrets().Text(err.Error()), "again_in", wait.String())
		}
		pause(s.life, wait)
	}
}

// serve opens a connection and serves it until it ends.
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
	over := make(chan error, 1)
	go func() { over <- session.Wait() }()
	err = s.attend(session, over)
	s.attach(nil)
	link.close() // before the session, which would wait for an unresponsive peer
	_ = session.Close()
	link.release()
	return err
}

// attend keeps the list of tools up to date until the session ends.
func (s *Server) attend(session *mcp.ClientSession, over <-chan error) error {
	for {
		if err := s.list(session); err != nil {
			return fmt.Errorf("list the tools: %w", err)
		}
		s.attach(session)
		pause(s.life, listPause)
		select {
		case err := <-over:
			return errors.Join(errors.New("the connection is over"), err)
		case <-s.life.Done():
			return s.life.Err()
		case <-s.changed:

		}
	}
}

func (s *Server) attach(session *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != nil && s.session == nil {
		s.logger.InfoContext(s.life, "MCP server is connected", "tools", len(s.offers))
	}
	s.session = session
}

// client returns a new MCP client. It declares no capability except elicitation, if that is
// permitted.
func (s *Server) client() *mcp.Client {
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		Logger:         slog.New(slog.DiscardHandler), // calls return its errors, and its messages may have content
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

// secrets returns the redactor of the server's secrets.
func (s *Server) secrets() secrets.Redactor {
	return s.dialer.redactor()
}

// pause waits for a duration, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
