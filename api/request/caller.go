package request

import (
	"context"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Caller returns the principal of a request, or an anonymous one of the default tenant.
func Caller(ctx context.Context) auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return p
	}
	return auth.Principal{Tenant: auth.TenantDefault}
}

// ThreadIn returns a thread of the caller's tenant. It is the only way to a thread, so no caller
// reaches another tenant's.
func ThreadIn(ctx context.Context, id string) (stream.Thread, error) {
	p, err := Principal(ctx)
	if err != nil {
		return stream.Thread{}, err
	}
	return stream.Thread{Tenant: p.Tenant, ID: id}, nil
}

// Requester returns the caller, for the log; nil = anonymous.
func Requester(ctx context.Context) *auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return &p
	}
	return nil
}

// Principal returns the principal of a request. A request without one gets 401.
func Principal(ctx context.Context) (auth.Principal, error) {
	p, ok := auth.From(ctx)
	if !ok {
		return p, problem.Unauthorized("", "the request does not say who sends it")
	}
	return p, nil
}
