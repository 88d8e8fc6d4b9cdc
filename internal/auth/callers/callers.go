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
)

// New makes the authenticator for an API that listens on addr. In the mode oidc it tries to reach
// the provider. If the provider is unavailable, New logs a warning, and the next request with a
// token tries again.
//
// In the mode none every caller has the role admin.
//
// Errors: *config.VariableError.
func New(ctx context.Context, cfg config.Auth, addr, admin string, logger *slog.Logger) (auth.Authenticator, error) {
	if err := cfg.CheckAddr(addr); err != nil {
		return nil, err
	}
	callers, err := newCallers(ctx, cfg, admin, logger)
	if err != nil {
		return nil, err
	}
	return &auth.HostCheck{Hosts: cfg.AllowedHosts(), Callers: callers}, nil
}

// newCallers makes the authenticator of a mode.
func newCallers(ctx context.Context, cfg config.Auth, admin string, logger *slog.Logger) (auth.Authenticator, error) {
	switch cfg.Mode {
	case config.AuthHeader:
		return &auth.Proxy{Headers: cfg.Headers, Trusted: cfg.Proxies}, nil
	case config.AuthAPIKey:
		keys, err := apikey.Load(cfg.Keys)
		if err != nil {
			return nil, &config.VariableError{Name: "PERDURE_AUTH_KEYS", Err: err}
		}
		return keys, nil
	case config.AuthOIDC:
		tokens := oidc.New(oidc.Config(cfg.OIDC))
		err := tokens.Discover(ctx)
		// The provider may start after the API; each request with a token tries again.
		if errors.Is(err, auth.ErrUnavailable) {
			logger.WarnContext(ctx, "the OpenID provider cannot be reached: the API refuses all tokens until it can", "error", err)
		} else if err != nil {
			return nil, &config.VariableError{Name: "PERDURE_OIDC_ISSUER", Err: err}
		}
		return tokens, nil
	default:
		return &auth.Anonymous{Headers: cfg.Headers, Roles: []string{admin}}, nil
	}
}
