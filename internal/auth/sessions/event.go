package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
)

// End is why a session was ended before its time.
type End string

// The reasons why sessions end before their time.
const (
	EndedByUser     End = "signed out"
	EndedByProvider End = "ended by the provider"
	EndedByRefusal  End = "the provider refuses to renew the claims"
	EndedBySignIn   End = "replaced by a sign-in of the same browser"
	EndedByLimit    End = "replaced by a later session of the user"
)

// signedIn reports that a user has signed in. It is the only place that does.
func (s *Sessions) signedIn(ctx context.Context, p auth.Principal) {
	s.cfg.Logger.DebugContext(ctx, "a user has signed in", "tenant", p.Tenant)
}

// signedOut reports that a session has ended before its time. It is the only place that does.
// Sessions also end by their deadline and their idle timeout, which no process reports.
func (s *Sessions) signedOut(ctx context.Context, p auth.Principal, reason End) {
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
