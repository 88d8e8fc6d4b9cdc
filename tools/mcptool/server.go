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
	// listPause is the least time between two lists, however often the server says that they change.
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
	changed chan struct{} // holds at most one note that the list of tools has changed

	mu      sync.Mutex
	session *mcp.ClientSession // nil while the server is away
	offers  []tools.Offer
	known   bool
	next    int // number of the next call
	watched map[string]*progress
	asker   *asker // the one call that the server may ask in

	turn chan struct{} // held by that call
}

// Start begins to connect, and keeps connected until Stop. Errors are *ConfigError; that the server
// is away is none.
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

// Stop ends the connection, the calls that are under way, and the program, and waits for it.
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

// run connects, over and over, until the server's life ends.
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

// serve returns one connection, from its beginning to its end.
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
	link.close() // before the session, which would wait for a peer that does not listen
	_ = session.Close()
	link.release()
	return err
}

// attend keeps the list of tools up to date until the session is over.
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

// client returns a new MCP client. It declares no capability, so that servers know that they may ask for nothing, unless
// they may elicit.
func (s *Server) client() *mcp.Client {
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		Logger:         slog.New(slog.DiscardHandler), // its errors come back from calls, its notes may have content
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

// secrets returns what hides the server's secrets.
func (s *Server) secrets() secrets.Redactor {
	return s.dialer.redactor()
}

// pause waits for a time, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
