package auditing

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// recordTimeout bounds the write of one entry. It continues if the client is gone.
const recordTimeout = 5 * time.Second

// Pending is the entry of a request that has no outcome yet. It is safe for concurrent use.
type Pending struct {
	record func(context.Context, audit.Entry) error // writes the entry; see Recorder.record

	mu      sync.Mutex
	entry   audit.Entry
	settled bool
	err     error // of the write
}

// pendingKey is the context key of a *Pending, sourceKey that of an audit.Source.
type (
	pendingKey struct{}
	sourceKey  struct{}
)

// from returns the pending entry of a context; nil = the request is not recorded.
func from(ctx context.Context) *Pending {
	p, _ := ctx.Value(pendingKey{}).(*Pending)
	return p
}

// Detail adds a fact to the entry of the request. value is cut to audit.MaxTextBytes; an empty one
// is left out.
func Detail(ctx context.Context, name, value string) {
	p := from(ctx)
	if p == nil || value == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entry.Details == nil {
		p.entry.Details = map[string]string{}
	}
	p.entry.Details[name] = audit.Cut(value)
}

// About changes what the entry of the request is about.
func About(ctx context.Context, change func(*audit.Target)) {
	if p := from(ctx); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		change(&p.entry.Target)
	}
}

// As changes the action of the entry: what the request did is known only when it has done it.
func As(ctx context.Context, action audit.Action) {
	if p := from(ctx); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.entry.Action = action
	}
}

// By changes the actor of the entry of the request. The caller of a link has no credentials.
func By(ctx context.Context, caller auth.Principal) {
	if p := from(ctx); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.entry.Actor = audit.ActorOf(caller)
	}
}

// Accept records that the request took effect, before its response begins. Later outcomes of the
// request are not recorded. ctx is a context of the request. It is only necessary for a frame whose
// response is a stream. Errors: 503 audit_unavailable.
func Accept(ctx context.Context) error {
	p := from(ctx)
	if p == nil {
		return nil
	}
	return p.settle(ctx, http.StatusOK, nil)
}

// Settle records the outcome of a frame, whose error is err. It returns err, or a 503
// audit_unavailable in its place if the frame took effect but could not be recorded.
func Settle(ctx context.Context, err error) error {
	p := from(ctx)
	if p == nil {
		return err
	}
	if err == nil {
		return p.settle(ctx, http.StatusOK, nil)
	}
	refusal := problem.Of(err)
	_ = p.settle(ctx, refusal.Status, refusal)
	return err
}

// Also records a further action of the request, such as one decision of several, with its error; nil
// = it took effect. about changes its target. A failure is logged.
func Also(ctx context.Context, action audit.Action, about func(*audit.Entry), err error) {
	p := from(ctx)
	if p == nil {
		return
	}
	status, refusal := http.StatusOK, (*problem.Problem)(nil)
	if err != nil {
		refusal = problem.Of(err)
		status = refusal.Status
	}
	p.mu.Lock()
	further := &Pending{record: p.record, entry: audit.Entry{Action: action, Actor: p.entry.Actor, Source: p.entry.Source, Target: p.entry.Target}}
	p.mu.Unlock()
	about(&further.entry)
	_ = further.settle(ctx, status, refusal)
}

// settle records the outcome, once: later calls return the error of the first one. A denial or
// failure that cannot be recorded is logged, and is no error.
func (p *Pending) settle(ctx context.Context, status int, refusal *problem.Problem) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled {
		return p.err
	}
	p.settled = true
	outcome, isRecorded := outcomeOf(p.entry.Action, status)
	if refusal != nil && (refusal.Code == problem.CodeLegalHold || refusal.Code == problem.CodeFileInfected) {
		outcome, isRecorded = audit.Denied, true
	}
	if !isRecorded {
		return nil
	}
	p.entry.Outcome, p.entry.Status = outcome, status
	if refusal != nil {
		p.entry.Code, p.entry.Rule = refusal.Code, refusal.Rule
	}
	addRun(&p.entry.Target, telemetry.RunFrom(ctx))
	if err := p.record(ctx, p.entry); err != nil && outcome == audit.Accepted {
		p.err = err
	}
	return p.err
}

// outcomeOf returns the outcome of an action by the status of its response, and whether it is
// recorded.
func outcomeOf(action audit.Action, status int) (o audit.Outcome, isRecorded bool) {
	isRead := action == audit.Read
	switch {
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return audit.Denied, true
	case status >= http.StatusInternalServerError:
		return audit.Unknown, !isRead
	case status >= http.StatusBadRequest:
		return "", false
	}
	return audit.Accepted, !isRead
}

// sourceOf returns where a request came from.
func sourceOf(ctx context.Context, r *http.Request) audit.Source {
	s := audit.Source{Address: r.RemoteAddr, UserAgent: audit.Cut(r.UserAgent())}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		s.TraceID = span.TraceID().String()
	}
	return s
}
