// Package callers makes the authenticator that the configuration of a process selects.
package callers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/stream"
)

// Callers authenticates the callers of an API. It follows changes of the file of keys until Close.
type Callers struct {
	auth.HostCheck

	watch  *filewatch.Watch // nil = the mode has no file
	tokens *oidc.Tokens     // nil = the mode is another one than oidc
	keys   *apikey.Keys     // nil = the mode is another one than apikey
}

// Observe calls observer with each content of the file of keys that is in use, see filewatch.Changes.
// Modes without a file have none.
func (c *Callers) Observe(observer func(filewatch.Change)) {
	if c.keys != nil {
		c.keys.Observe(observer)
	}
}

// New makes the authenticator for an API that listens on addr. In the mode oidc it tries to reach
// the provider. If the provider is unavailable, New logs a warning, and the next request with a
// token tries again. The caller must call Close.
//
// In the mode none every caller has the role admin.
//
// Errors: *config.VariableError.
func New(ctx context.Context, cfg config.Auth, addr, admin string, logger *slog.Logger) (*Callers, error) {
	if err := cfg.CheckAddr(addr); err != nil {
		return nil, err
	}
	c := &Callers{HostCheck: auth.HostCheck{Hosts: cfg.AllowedHosts()}}
	var err error
	switch cfg.Mode {
	case config.AuthHeader:
		c.Callers = &auth.Proxy{Headers: cfg.Headers, Trusted: cfg.TrustedProxies(), Secrets: cfg.ProxySecrets}
	case config.AuthAPIKey:
		err = c.loadKeys(cfg.Keys, logger)
	case config.AuthOIDC:
		err = c.openTokens(ctx, cfg.OIDC, logger)
	default:
		c.Callers = &auth.Anonymous{Headers: cfg.Headers, Roles: []string{admin}}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the watch of the file of keys.
func (c *Callers) Close() {
	if c.watch != nil {
		c.watch.Stop()
	}
}

// OpenSessions opens the sessions of browsers on a log, if the configuration has them, and
// authenticates requests with their cookie from then on. publicURL is the origin of the API for
// browsers. The result is nil if there are none. The caller closes it. OpenSessions must be called
// before requests arrive.
func (c *Callers) OpenSessions(ctx context.Context, cfg config.Sessions, publicURL string, log *stream.Log, logger *slog.Logger) (*sessions.Sessions, error) {
	if cfg.ClientID == "" {
		return nil, nil
	}
	client := c.tokens.NewClient(oidc.ClientConfig{
		ID: cfg.ClientID, Secret: cfg.ClientSecret, RedirectURL: publicURL + sessions.CallbackPath, Scopes: cfg.Scopes,
	})
	opened, err := sessions.Open(ctx, sessions.Config{
		Log: log, Client: client, PublicURL: publicURL, Idle: cfg.Idle, Lifetime: cfg.Lifetime, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	c.Callers = tokenOrCookie{c.tokens, opened}
	return opened, nil
}

// tokenOrCookie authenticates a request by its token, or by its cookie if it has no token.
type tokenOrCookie struct{ tokens, sessions auth.Authenticator }

// Authenticate implements auth.Authenticator.
func (t tokenOrCookie) Authenticate(r *http.Request) (auth.Identity, error) {
	identity, err := t.tokens.Authenticate(r)
	if errors.Is(err, auth.ErrNoCredentials) {
		return t.sessions.Authenticate(r)
	}
	return identity, err
}

// loadKeys loads the file of keys, and watches it. Errors: *config.VariableError.
func (c *Callers) loadKeys(file string, logger *slog.Logger) error {
	keys := apikey.New(file)
	watch := filewatch.Start(func() {
		if count, err := keys.Load(); err != nil {
			logger.Warn("the file of API keys is invalid: the API keeps the keys that it had", "error", err)
		} else {
			logger.Info("the file of API keys has changed", "keys", count)
		}
	}, file)
	if _, err := keys.Load(); err != nil {
		watch.Stop()
		return &config.VariableError{Name: "PERDURE_AUTH_KEYS", Err: err}
	}
	c.Callers, c.keys, c.watch = keys, keys, watch
	return nil
}

// openTokens makes the authenticator of the mode oidc. Errors: *config.VariableError.
func (c *Callers) openTokens(ctx context.Context, cfg config.OIDC, logger *slog.Logger) error {
	c.tokens = oidc.New(oidc.Config(cfg))
	c.Callers = c.tokens
	err := c.tokens.Discover(ctx)
	// The provider may start after the API; each request with a token tries again.
	if errors.Is(err, auth.ErrUnavailable) {
		logger.WarnContext(ctx, "the OpenID provider cannot be reached: the API refuses all tokens until it can", "error", err)
	} else if err != nil {
		return &config.VariableError{Name: "PERDURE_OIDC_ISSUER", Err: err}
	}
	return nil
}
