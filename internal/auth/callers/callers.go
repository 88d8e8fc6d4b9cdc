// Package callers makes the authenticator that the configuration of a process selects.
package callers

import (
	"context"
	"errors"
	"log/slog"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// Callers authenticates the callers of an API. It follows changes of the file of keys until Close.
type Callers struct {
	auth.HostCheck

	watch *filewatch.Watch // nil = the mode has no file
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
		c.Callers, err = newTokens(ctx, cfg.OIDC, logger)
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
	c.Callers, c.watch = keys, watch
	return nil
}

// newTokens makes the authenticator of the mode oidc.
func newTokens(ctx context.Context, cfg config.OIDC, logger *slog.Logger) (auth.Authenticator, error) {
	tokens := oidc.New(oidc.Config(cfg))
	err := tokens.Discover(ctx)
	// The provider may start after the API; each request with a token tries again.
	if errors.Is(err, auth.ErrUnavailable) {
		logger.WarnContext(ctx, "the OpenID provider cannot be reached: the API refuses all tokens until it can", "error", err)
	} else if err != nil {
		return nil, &config.VariableError{Name: "PERDURE_OIDC_ISSUER", Err: err}
	}
	return tokens, nil
}
