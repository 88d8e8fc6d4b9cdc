package access

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
)

// Guard decides what callers may do with threads and schedules. All fields but Threads are
// required, and owned by the Server. It has no state of its own, and is safe for concurrent use.
type Guard struct {
	Policies *policy.Engine
	Log      *stream.Log
	// Threads knows the owners and shares of threads without a request to the log. It lags behind
	// the log for a moment. nil = the log is asked.
	Threads *threads.Index
}

// Check returns nil if the caller may do something with a thread. Errors: *policy.DeniedError, 404
// unknown_thread, 401.
//
// A handler that reads calls Check after it has read: another caller may begin the thread before.
func (g *Guard) Check(ctx context.Context, thread stream.Thread, action policy.Action) error {
	return g.check(ctx, thread, action, policy.Context{})
}

// CheckInterrupt is Check for one interrupt of the thread. isApprover tells that the rule of the
// interrupt makes the caller an approver.
func (g *Guard) CheckInterrupt(ctx context.Context, thread stream.Thread, action policy.Action, isApprover bool) error {
	return g.check(ctx, thread, action, policy.Context{Approver: isApprover})
}

// CheckInput returns nil if the caller may send an input to a thread. last is the thread's last
// record; 0 = the input begins the thread.
func (g *Guard) CheckInput(ctx context.Context, thread stream.Thread, last uint64) error {
	if last == 0 {
		return g.CheckTenant(ctx, policy.CreateThread)
	}
	return g.Check(ctx, thread, policy.RunThread)
}

// CheckTenant returns nil if the caller may create something in its tenant.
func (g *Guard) CheckTenant(ctx context.Context, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, action, policy.Tenant(p.Tenant), policy.Context{})
}

// CheckPlatform returns nil if the caller may do something with what all tenants share.
func (g *Guard) CheckPlatform(ctx context.Context, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, action, policy.Platform(), policy.Context{})
}

// CheckTenantOf is CheckTenant for a tenant that need not be the caller's.
func (g *Guard) CheckTenantOf(ctx context.Context, tenant string, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, action, policy.Tenant(tenant), policy.Context{})
}

// CheckSubject returns nil if the caller may export what its tenant stores about a subject.
func (g *Guard) CheckSubject(ctx context.Context, subject string) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, policy.ExportSubject, policy.Subject(p.Tenant, subject), policy.Context{})
}

// CheckSchedule returns nil if the caller may do something with a schedule of its tenant. owner is
// nil for an anonymous owner.
func (g *Guard) CheckSchedule(ctx context.Context, owner *auth.Principal, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	subject := ""
	if owner != nil {
		subject = owner.Subject
	}
	return g.Policies.Check(p, action, policy.Schedule(p.Tenant, subject), policy.Context{})
}

// CheckFile returns nil if the caller may do something with a file of its tenant, whatever threads
// refer to it. owner is "" for an anonymous owner.
func (g *Guard) CheckFile(ctx context.Context, owner string, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, action, policy.StoredFile(p.Tenant, owner), policy.Context{})
}

// CheckAgent returns nil if the caller may do something with an agent of a tenant; "" = of the
// platform.
func (g *Guard) CheckAgent(ctx context.Context, tenant, name string, action policy.Action) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	return g.Policies.Check(p, action, policy.Agent(tenant, name), policy.Context{})
}

// CheckUses returns nil if the caller may name all that a definition uses in an agent of its
// tenant. The error is a 403 with the key of the first name that it may not.
func (g *Guard) CheckUses(ctx context.Context, d *agents.Definition) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	for _, use := range d.Uses() {
		action, resource := policy.UseTool, policy.Tool(use.Name)
		switch use.Kind {
		case agents.UseModel:
			action, resource = policy.UseModel, policy.Model(use.Name)
		case agents.UseProgram:
			action, resource = policy.UseProgram, policy.Program(use.Name)
		case agents.UseHost:
			action, resource = policy.UseHost, policy.Host(use.Name)
		case agents.UseService:
			action, resource = policy.RunAs, policy.Tenant(p.Tenant)
		}
		if err := g.Policies.Check(p, action, resource, policy.Context{}); err != nil {
			denied := *problem.Of(err)
			denied.Pointer = problem.Pointer(use.Key)
			denied.Detail = fmt.Sprintf("%s on the %s %.100q. The operator's policies decide what agents of tenants use", denied.Detail, use.Kind, use.Name)
			return &denied
		}
	}
	return nil
}

// check is Check with the context of the decision.
func (g *Guard) check(ctx context.Context, thread stream.Thread, action policy.Action, c policy.Context) error {
	p, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	decide := func(known *stream.Access, err error) error {
		switch {
		case err != nil:
			return err
		case known == nil:
			return problem.NoThread(thread)
		}
		return g.Policies.Check(p, action, policy.Thread(thread.Tenant, known), c)
	}
	err = decide(g.AccessTo(ctx, thread))
	// g.Threads may lack a share that the log has: the API answers the request for a share when the log
	// has it. So only the log denies.
	if g.Threads != nil && policy.IsDenied(err) {
		err = decide(g.Log.AccessOf(ctx, thread))
	}
	return err
}

// AccessTo returns the owner and the shares of a thread; nil = the thread does not exist. It does
// not check what the caller may do.
func (g *Guard) AccessTo(ctx context.Context, thread stream.Thread) (*stream.Access, error) {
	if g.Threads != nil {
		if known, ok := g.Threads.AccessTo(thread); ok {
			decoded := known.Decode()
			return &decoded, nil
		}
	}
	return g.Log.AccessOf(ctx, thread)
}
