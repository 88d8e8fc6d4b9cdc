package auditing

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// Callers without valid credentials cause at most rejectionsPerSecond entries per second and
// process, after a burst. The next entry has the number of those that were left out.
const (
	rejectionsPerSecond = 10
	rejectionsBurst     = 100
)

// Recorder records requests in the audit log. It is safe for concurrent use. A Recorder without a
// writer records nothing.
type Recorder struct {
	writer     *store.Writer
	logger     *slog.Logger
	rejections *rate.Limiter
	omitted    atomic.Int64 // rejections since the last entry about one
}

// NewRecorder returns a recorder. writer nil = nothing is recorded.
func NewRecorder(writer *store.Writer, logger *slog.Logger) *Recorder {
	return &Recorder{writer: writer, logger: logger, rejections: rate.NewLimiter(rejectionsPerSecond, rejectionsBurst)}
}

// Begin returns a context with the pending entry of an action. The actor is the caller in ctx, the
// source that of the connection.
func (r *Recorder) Begin(ctx context.Context, action audit.Action) context.Context {
	if r.writer == nil {
		return ctx
	}
	e := audit.Entry{Action: action}
	if source, ok := ctx.Value(sourceKey{}).(audit.Source); ok {
		e.Source = &source
	}
	if caller, ok := auth.From(ctx); ok {
		e.Actor = audit.ActorOf(caller)
	}
	return context.WithValue(ctx, pendingKey{}, &Pending{record: r.record, entry: e})
}

// Record returns middleware that records the requests of a route. actionOf returns their action. It
// runs after the authentication.
func (r *Recorder) Record(actionOf func(method, route string) audit.Action) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.writer == nil {
			return
		}
		ctx := context.WithValue(c.Request.Context(), sourceKey{}, sourceOf(c.Request.Context(), c.Request))
		action := actionOf(c.Request.Method, c.FullPath())
		ctx = r.Begin(ctx, action)
		About(ctx, func(t *audit.Target) { *t = targetOf(c) })
		if action == audit.Read {
			Detail(ctx, "route", c.Request.Method+" "+c.FullPath())
		}
		c.Request = c.Request.WithContext(ctx)
		w := &recordedResponse{ResponseWriter: c.Writer, c: c, pending: from(ctx)}
		c.Writer = w
		c.Next()
		if !w.Written() { // a response without a body
			w.WriteHeaderNow()
		}
	}
}

// targetOf returns what a request is about, by its path. Invalid IDs are left out.
func targetOf(c *gin.Context) audit.Target {
	segment := func(name string) string {
		value := request.Segment(c, name)
		if request.CheckID("", value) != nil {
			return ""
		}
		return value
	}
	return audit.Target{Thread: segment("thread"), Run: segment("run"), Agent: segment("agent"), Approval: segment("approval"), Schedule: segment("schedule")}
}

// Reject records a request that is refused before its caller is known: its credentials, its sender
// or its origin are not accepted. reason is not shown to the client.
func (r *Recorder) Reject(c *gin.Context, status int, reason string) {
	if r.writer == nil {
		return
	}
	source := sourceOf(c.Request.Context(), c.Request)
	e := audit.Entry{
		Action: audit.Authenticate, Outcome: audit.Denied, Status: status, Source: &source, Target: targetOf(c),
		Details: map[string]string{"reason": audit.Cut(reason), "route": c.Request.Method + " " + c.FullPath()},
	}
	_ = r.record(c.Request.Context(), e)
}

// Report records an action of a caller that is no request of its own.
func (r *Recorder) Report(ctx context.Context, caller auth.Principal, action audit.Action, details map[string]string) {
	if r.writer == nil {
		return
	}
	e := audit.Entry{Action: action, Outcome: audit.Accepted, Actor: audit.ActorOf(caller), Details: details}
	if source, ok := ctx.Value(sourceKey{}).(audit.Source); ok {
		e.Source = &source
	}
	_ = r.record(ctx, e)
}

// allow reports whether an entry is written: denials of callers without valid credentials have a
// rate. An entry gets the number of those that were left out before.
func (r *Recorder) allow(e *audit.Entry) bool {
	if e.Actor != nil || e.Outcome != audit.Denied {
		return true
	}
	if !r.rejections.Allow() {
		r.omitted.Add(1)
		return false
	}
	if n := r.omitted.Swap(0); n > 0 {
		e.Details = maps.Clone(e.Details)
		if e.Details == nil {
			e.Details = map[string]string{}
		}
		e.Details["omitted"] = strconv.FormatInt(n, 10)
	}
	return true
}

// record writes an entry to its chain. The error is a 503 audit_unavailable; the cause is logged.
func (r *Recorder) record(ctx context.Context, e audit.Entry) error {
	if !r.allow(&e) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := r.writer.Record(ctx, chainOf(&e), e); err != nil {
		r.logger.ErrorContext(ctx, "an entry of the audit log was not written", "action", e.Action, "outcome", e.Outcome, "error", err)
		p := problem.New(http.StatusServiceUnavailable, "audit_unavailable", "the request took effect, but the audit log cannot record it now: send the same request again")
		p.RetryAfter = 1
		return p
	}
	return nil
}

// chainOf returns the chain of an entry: that of the actor's tenant, and the platform's for what all
// tenants share and for callers that are not known.
func chainOf(e *audit.Entry) store.Chain {
	isDefinition := e.Action == audit.PublishAgent || e.Action == audit.DraftAgent
	if e.Actor == nil || isDefinition && e.Details[audit.DetailScope] != audit.ScopeTenant {
		return store.Platform
	}
	return store.OfTenant(e.Actor.Tenant)
}

// addRun adds the run of a request to its target.
func addRun(t *audit.Target, run telemetry.Run) {
	t.Thread, t.Run, t.Agent = cmp.Or(run.Thread, t.Thread), cmp.Or(run.ID, t.Run), cmp.Or(run.Agent, t.Agent)
}
