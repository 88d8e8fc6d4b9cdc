package request

import (
	"context"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
)

// Caller returns the principal of a request. Without one it returns an anonymous principal of the
// default tenant. Code that must not run without a principal uses Principal.
func Caller(ctx context.Context) auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return p
	}
	return auth.Principal{Tenant: auth.TenantDefault}
}

// Requester returns the caller as the log records requesters and approvers; nil = the request has
// no principal.
func Requester(ctx context.Context) *auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return &p
	}
	return nil
}

// Principal returns the principal of a request. The error is a 401 if the request has none.
func Principal(ctx context.Context) (auth.Principal, error) {
	p, ok := auth.From(ctx)
	if !ok {
		return p, problem.Unauthorized("", "the request has no credentials")
	}
	return p, nil
}
