package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
)

// Observe has f called for each event, with a context of the request that has caused it. It must be
// called before requests arrive.
func (s *Sessions) Observe(f func(context.Context, Event)) { s.observe = f }

// signedIn reports that a user has signed in. It is the only place that does.
func (s *Sessions) signedIn(ctx context.Context, p auth.Principal) {
	s.observe(ctx, Event{Principal: p})
	s.cfg.Logger.DebugContext(ctx, "a user has signed in", "tenant", p.Tenant)
}

// signedOut reports that a session has ended before its time. It is the only place that does.
// Sessions also end by their deadline and their idle timeout, which no process reports.
func (s *Sessions) signedOut(ctx context.Context, p auth.Principal, reason End) {
	s.observe(ctx, Event{Principal: p, Ended: reason})
	s.cfg.Logger.DebugContext(ctx, "a session has ended", "tenant", p.Tenant, "reason", string(reason))
}

// refused reports that a sign-in, a sign-out or a logout token was refused. It is the only place that
// does. The caller of Authenticate reports other requests.
func (s *Sessions) refused(r *http.Request, err error) {
	text, level := err.Error(), slog.LevelDebug
	if errors.Is(err, auth.ErrInvalid) || errors.Is(err, auth.ErrCrossSite) { // an attack, or a mistake in the configuration
		level = slog.LevelWarn
	}
	s.cfg.Logger.Log(r.Context(), level, "a sign-in, a sign-out or a logout was refused", "path", r.URL.Path, "peer", r.RemoteAddr, "reason", text[:min(len(text), maxReasonBytes)])
}

// maxReasonBytes bounds the reason in the log, in bytes.
const maxReasonBytes = 300
