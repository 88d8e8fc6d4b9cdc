package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/index/watch"
	"github.com/perdure/perdure/stream"
)

// Paths of the routes of sign-in. The provider sends users to the CallbackPath.
const (
	LoginPath    = "/auth/login"
	CallbackPath = "/auth/callback"
)

// Config configures Sessions. All fields are required.
type Config struct {
	Log    *stream.Log
	Client *oidc.Client
	// PublicURL is the origin of the API for browsers, such as https://agents.example. With https the
	// cookies are secure.
	PublicURL string
	// Idle is how long a session may have no request. Lifetime is how long it may last.
	Idle, Lifetime time.Duration
	Logger         *slog.Logger
}

// Bounds of sessions: of all tenants, and of one user. The oldest session of the user ends if a
// further one begins.
const (
	maxSessions     = 100_000
	maxUserSessions = 20
)

// Intervals of sessions. A token is replaced after rotateInterval; the earlier one is valid for
// tokenGrace longer, because requests with it may be on their way.
const (
	touchInterval  = time.Minute
	rotateInterval = 15 * time.Minute
	tokenGrace     = time.Minute
)

// Sessions are the sessions of all API processes. Sessions is an auth.Authenticator for requests with
// the cookie. It is safe for concurrent use. Open makes it, and Close ends it.
type Sessions struct {
	cfg     Config
	bucket  *bucket
	tokens  *scs.SessionManager
	index   *index
	watch   *watch.Watch
	observe func(context.Context, Event)
	// renewals has one renewal of claims at a time for each session.
	renewals singleflight.Group
	// exchanges has one unit for each exchange of a code that may begin.
	exchanges *semaphore.Weighted
	// touchInterval, rotateInterval and tokenGrace are the constants; tests change them.
	touchInterval, rotateInterval, tokenGrace time.Duration
}

// Open opens the bucket and loads the index. It blocks until both are done or ctx ends. The caller
// must call Close.
func Open(ctx context.Context, cfg Config) (*Sessions, error) {
	b, err := openBucket(ctx, cfg.Log)
	if err != nil {
		return nil, err
	}
	s := &Sessions{
		cfg: cfg, bucket: b, tokens: newTokenManager(b, cfg.Lifetime), index: newIndex(b, cfg.Idle),
		observe:       func(context.Context, Event) {},
		exchanges:     semaphore.NewWeighted(maxExchanges),
		touchInterval: min(touchInterval, cfg.Idle/4), rotateInterval: rotateInterval, tokenGrace: tokenGrace,
	}
	source := watch.Source{Log: cfg.Log, Bucket: b.kv, Keys: sessionPrefix + ">"}
	if s.watch, err = watch.Begin(ctx, source, s.index.receiver()); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the watch, and with it the validity of all identities. The sessions stay. Close of nil
// does nothing.
func (s *Sessions) Close() {
	if s == nil {
		return
	}
	s.watch.Stop()
	s.index.close()
}

// Authenticate implements auth.Authenticator for requests with the cookie of a session. It renews
// what is due: the claims, the idle timeout and the token, whose new cookie is in the identity.
//
// Errors: auth.ErrNoCredentials, auth.ErrSessionEnded, auth.ErrCrossSite, auth.ErrUnavailable.
func (s *Sessions) Authenticate(r *http.Request) (auth.Identity, error) {
	token, err := s.sentToken(r)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := s.checkSite(r); err != nil {
		return auth.Identity{}, err
	}
	ctx, id, rec, err := s.find(r.Context(), token)
	if err != nil {
		return auth.Identity{}, err
	}
	if rec.isStale(time.Now()) {
		if rec, err = s.renewClaims(ctx, id); err != nil {
			return auth.Identity{}, err
		}
	}
	cookie := s.touch(ctx, id, rec, !isUpgrade(r))
	valid, ok := s.index.validity(id, rec)
	if !ok {
		return auth.Identity{}, auth.ErrSessionEnded
	}
	return auth.Identity{Principal: rec.Principal, Expires: rec.Deadline, Valid: valid, Cookie: cookie}, nil
}

// isUpgrade reports whether a request opens a WebSocket.
func isUpgrade(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// find returns the session of a token, and a context with the token's data for scs. Errors:
// auth.ErrSessionEnded, auth.ErrUnavailable.
func (s *Sessions) find(ctx context.Context, token string) (tokenCtx context.Context, id string, rec *record, err error) {
	if !tokenPattern.MatchString(token) {
		return nil, "", nil, auth.ErrSessionEnded
	}
	if tokenCtx, err = s.tokens.Load(ctx, token); err != nil {
		return nil, "", nil, unavailable(err)
	}
	if id = s.tokens.GetString(tokenCtx, sessionKey); id == "" {
		return nil, "", nil, auth.ErrSessionEnded
	}
	value, revision, err := s.bucket.read(ctx, sessionPrefix+id)
	if err != nil {
		return nil, "", nil, err
	}
	rec = decodeRecord(value, revision)
	if rec == nil || !time.Now().Before(rec.ends(s.cfg.Idle)) {
		return nil, "", nil, auth.ErrSessionEnded
	}
	return tokenCtx, id, rec, nil
}

// store writes a record, and sets its revision. Errors: errConflict, auth.ErrUnavailable.
func (s *Sessions) store(ctx context.Context, id string, rec *record) error {
	value, err := rec.encode()
	if err != nil {
		return err
	}
	revision, err := s.bucket.write(ctx, sessionPrefix+id, value, rec.ends(s.cfg.Idle), rec.revision)
	if err == nil {
		rec.revision = revision
	}
	return err
}

// touch records a request of the session, and replaces the token if that is due and mayRotate is
// set: then it returns the new cookie. A failure is only logged, because the next request tries
// again. Of concurrent requests one writes the record, and only that one replaces the token.
func (s *Sessions) touch(tokenCtx context.Context, id string, rec *record, mayRotate bool) *http.Cookie {
	now := time.Now()
	rotates := mayRotate && now.Sub(rec.Rotated) >= s.rotateInterval
	if !rotates && now.Sub(rec.Active) < s.touchInterval {
		return nil
	}
	// A client that disconnects must not lose the new token: the record names it as issued.
	tokenCtx, cancel := context.WithTimeout(context.WithoutCancel(tokenCtx), writeTimeout)
	defer cancel()
	changed := *rec
	changed.Active = now
	if rotates {
		changed.Rotated = now
	}
	err := s.store(tokenCtx, id, &changed)
	if errors.Is(err, errConflict) {
		return nil
	}
	var cookie *http.Cookie
	if err == nil {
		*rec = changed
		if rotates {
			cookie, err = s.rotate(tokenCtx, id, rec)
		}
	}
	if err != nil {
		s.cfg.Logger.WarnContext(tokenCtx, "the record of a session could not be renewed", "error", err)
	}
	return cookie
}

// writeTimeout bounds writes that continue after their request.
const writeTimeout = 5 * time.Second

// rotate gives the session a new token, and lets the earlier one, which tokenCtx has, expire soon.
func (s *Sessions) rotate(tokenCtx context.Context, id string, rec *record) (*http.Cookie, error) {
	cookie, err := s.issueToken(tokenCtx, id, rec.Deadline)
	if err != nil {
		return nil, err
	}
	s.tokens.SetDeadline(tokenCtx, time.Now().Add(s.tokenGrace))
	_, _, err = s.tokens.Commit(tokenCtx)
	return cookie, err
}

// issueToken makes a token of a session, and returns its cookie.
func (s *Sessions) issueToken(ctx context.Context, id string, deadline time.Time) (*http.Cookie, error) {
	ctx, cancel := context.WithTimeout(detached{ctx}, writeTimeout)
	defer cancel()
	ctx, err := s.tokens.Load(ctx, "")
	if err != nil {
		return nil, err
	}
	s.tokens.Put(ctx, sessionKey, id)
	s.tokens.SetDeadline(ctx, deadline)
	token, _, err := s.tokens.Commit(ctx)
	if err != nil {
		return nil, err
	}
	return s.cookie(sessionCookie, token, 0), nil
}

// detached is a context without values: scs would find the data of another token in them.
type detached struct{ context.Context }

// Value implements context.Context.
func (detached) Value(any) any { return nil }

// Details are the times of a session.
type Details struct {
	// Started is when the user signed in. Without further requests the session ends at IdleEnd, and
	// at End in any case.
	Started, IdleEnd, End time.Time
}

// Describe returns the times of the session of a request. Errors: auth.ErrNoCredentials,
// auth.ErrSessionEnded, auth.ErrUnavailable.
func (s *Sessions) Describe(r *http.Request) (Details, error) {
	token, err := s.sentToken(r)
	if err != nil {
		return Details{}, err
	}
	_, _, rec, err := s.find(r.Context(), token)
	if err != nil {
		return Details{}, err
	}
	return Details{Started: rec.Started, IdleEnd: rec.ends(s.cfg.Idle), End: rec.Deadline}, nil
}
