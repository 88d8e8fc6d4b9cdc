package sessions_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true
	goleak.VerifyTestMain(m, streamtest.Leaks())
}

// wantEnded checks that a browser has no session.
func wantEnded(t *testing.T, s *sessions.Sessions, b *browser, when string) {
	t.Helper()
	if identity, err := b.identify(s); !errors.Is(err, auth.ErrSessionEnded) {
		t.Errorf("%s: got %+v, %v, want %v", when, identity.Principal, err, auth.ErrSessionEnded)
	}
}

// TestSessionHasThePrincipalOfTheIDToken: every API process accepts the cookie. The bucket has
// neither the token nor its key.
func TestSessionHasThePrincipalOfTheIDToken(t *testing.T) {
	t.Parallel()
	p, log := newProvider(t), streamtest.Open(t)
	p.claims = claims{"roles": []string{"finance"}}
	s, other := p.open(log), p.open(log)
	b := newBrowser(t)
	if _, err := b.identify(s); !errors.Is(err, auth.ErrNoCredentials) {
		t.Errorf("before sign-in: got %v, want %v", err, auth.ErrNoCredentials)
	}
	b.signIn(s, p)
	for _, process := range []*sessions.Sessions{s, other} {
		identity, err := b.identify(process)
		if want := (auth.Principal{Tenant: "shop", Subject: "ann", Roles: []string{"finance"}}); err != nil || !cmp.Equal(identity.Principal, want) {
			t.Errorf("got %+v, %v, want %+v", identity.Principal, err, want)
		}
		if left := time.Until(identity.Expires); left < 11*time.Hour || left > 12*time.Hour {
			t.Errorf("lifetime = %s, want 12h", left)
		}
	}
	c := b.cookies["__Host-perdure"]
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("cookie = %+v, want a secure one until the browser ends", c)
	}
	keys, values, err := s.Contents(b.request(http.MethodGet, "/"))
	if err != nil || strings.Contains(keys+values, b.token()) || !strings.Contains(keys, "token.") || !strings.Contains(keys, "session.") {
		t.Errorf("keys = %s, %v, want a digest of the token, and the token nowhere", keys, err)
	}
}

// TestSignInReplacesTheToken: a token that a browser had before sign-in, planted or its own, is
// worthless afterwards.
func TestSignInReplacesTheToken(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	attacker, victim := newBrowser(t), newBrowser(t)
	p.claims = claims{"sub": "eve"}
	attacker.signIn(s, p)
	victim.take(attacker.cookies["__Host-perdure"])
	p.set(func() { p.claims = claims{"sub": "ann"} })
	victim.signIn(s, p)
	if victim.token() == attacker.token() {
		t.Fatal("the token after sign-in is the planted one")
	}
	wantEnded(t, s, attacker, "the planted token after sign-in")
	if identity, err := victim.identify(s); err != nil || identity.Principal.Subject != "ann" {
		t.Errorf("after sign-in: got %+v, %v, want ann", identity.Principal, err)
	}
	invented := newBrowser(t)
	invented.take(&http.Cookie{Name: "__Host-perdure", Value: strings.Repeat("A", 43)})
	wantEnded(t, s, invented, "an invented token")
	before := invented.token()
	invented.signIn(s, p)
	if invented.token() == before {
		t.Error("the token after sign-in is the invented one")
	}
}

// TestTokenIsReplacedPeriodically: the earlier token is valid for requests that are on their way,
// and then no more. A WebSocket handshake, whose response sets no cookie, replaces no token.
func TestTokenIsReplacedPeriodically(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b := newBrowser(t)
	b.signIn(s, p)
	first := b.token()
	s.SetIntervals(0, 0, time.Hour)
	handshake := b.request(http.MethodGet, "/v1/ws")
	handshake.Header.Set("Upgrade", "websocket")
	handshake.Header.Set("Origin", origin)
	if identity, err := s.Authenticate(handshake); err != nil || identity.Cookie != nil {
		t.Errorf("WebSocket: got the cookie %v, %v, want none", identity.Cookie, err)
	}
	old := newBrowser(t)
	old.take(b.cookies["__Host-perdure"])
	if _, err := b.identify(s); err != nil || b.token() == first {
		t.Fatalf("after the interval: %v, and the token is %s, want another", err, b.token())
	}
	s.SetIntervals(time.Hour, time.Hour, time.Hour)
	if _, err := old.identify(s); err != nil {
		t.Errorf("the earlier token within its grace: %v", err)
	}
	s.SetIntervals(0, 0, 0)
	second := newBrowser(t)
	second.take(b.cookies["__Host-perdure"])
	if _, err := b.identify(s); err != nil {
		t.Fatal(err)
	}
	wantEnded(t, s, second, "the earlier token after its grace")
	s.SetIntervals(time.Hour, time.Hour, time.Hour)
	if _, err := b.identify(s); err != nil {
		t.Errorf("the last token: %v", err)
	}
}

// TestEndOfSessionEndsStreams: the context of an identity ends on every API process when the user
// signs out, when the session is idle, and at its deadline.
func TestEndOfSessionEndsStreams(t *testing.T) {
	t.Parallel()
	p, log := newProvider(t), streamtest.Open(t)
	for name, tt := range map[string]struct {
		change func(*sessions.Config)
		end    func(*sessions.Sessions, *browser) error
	}{
		"sign-out": {nil, func(s *sessions.Sessions, b *browser) error {
			location, cookie, err := s.SignOut(b.request(http.MethodPost, "/auth/logout"))
			if !strings.HasPrefix(location, p.url+"/logout?") || !strings.Contains(location, "id_token_hint=ey") || cookie.MaxAge >= 0 {
				t.Errorf("SignOut = %s, %+v, want the provider's URL, and no cookie", location, cookie)
			}
			return err
		}},
		"idle":     {func(c *sessions.Config) { c.Idle = 2 * time.Second }, nil},
		"deadline": {func(c *sessions.Config) { c.Lifetime = 2 * time.Second }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := tt.change
			if change == nil {
				change = func(*sessions.Config) {}
			}
			s, other := p.open(log, change), p.open(log, change)
			b := newBrowser(t)
			b.signIn(s, p)
			here, err := b.identify(s)
			if err != nil {
				t.Fatal(err)
			}
			there, err := b.identify(other)
			if err != nil {
				t.Fatal(err)
			}
			if tt.end != nil {
				if err := tt.end(s, b); err != nil {
					t.Fatal(err)
				}
			}
			<-here.Valid.Done()
			<-there.Valid.Done()
			wantEnded(t, s, b, "here")
			wantEnded(t, other, b, "on another process")
		})
	}
}

// TestClaimsAreRenewed: when the tokens of the provider expire, concurrent requests on two API
// processes use the refresh token once. The new roles count, and end the streams that the old ones
// have opened.
func TestClaimsAreRenewed(t *testing.T) {
	t.Parallel()
	p, log := newProvider(t), streamtest.Open(t)
	p.claims = claims{"roles": []string{"finance"}}
	s, other := p.open(log), p.open(log)
	b := newBrowser(t)
	b.signIn(s, p)
	before, err := b.identify(s)
	if err != nil {
		t.Fatal(err)
	}
	p.set(func() { p.claims = claims{"roles": []string{"sales"}} })
	if err := s.Expire(b.request(http.MethodGet, "/")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, process := range []*sessions.Sessions{s, other, s, other, s, other} {
		all.Go(func() {
			identity, err := process.Authenticate(b.request(http.MethodGet, "/v1/threads"))
			if err != nil || !cmp.Equal(identity.Principal.Roles, []string{"sales"}) {
				t.Errorf("after the renewal: got %+v, %v, want the role sales", identity.Principal, err)
			}
		})
	}
	all.Wait()
	if p.asked != 1 {
		t.Errorf("uses of the refresh token = %d, want 1", p.asked)
	}
	<-before.Valid.Done()
}

// TestFailedRenewalEndsTheSession: a refusal of the provider, and another subject, end the session.
// A failure of the provider does not.
func TestFailedRenewalEndsTheSession(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b := newBrowser(t)
	expire := func(b *browser) {
		t.Helper()
		if err := s.Expire(b.request(http.MethodGet, "/")); err != nil {
			t.Fatal(err)
		}
	}
	b.signIn(s, p)
	expire(b)
	p.set(func() {
		p.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusBadGateway) }
	})
	if _, err := b.identify(s); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("during an outage of the provider: got %v, want %v", err, auth.ErrUnavailable)
	}
	p.set(func() { p.answer = nil })
	if _, err := b.identify(s); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	expire(b)
	p.set(func() { p.refresh = "" })
	wantEnded(t, s, b, "after a refusal")
	p.set(func() { p.claims = claims{} })
	b.signIn(s, p)
	expire(b)
	p.set(func() { p.claims = claims{"sub": "bob"} })
	wantEnded(t, s, b, "after a renewal for another subject")
}

// TestUserHasBoundedSessions: a further session of a user ends the oldest one.
func TestUserHasBoundedSessions(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	var all []*browser
	for range sessions.MaxUserSessions + 1 {
		b := newBrowser(t)
		b.signIn(s, p)
		if _, err := b.identify(s); err != nil { // the index knows the session
			t.Fatal(err)
		}
		all = append(all, b)
	}
	wantEnded(t, s, all[0], "the oldest session")
	for _, b := range all[1:] {
		if _, err := b.identify(s); err != nil {
			t.Errorf("a later session: %v", err)
		}
	}
}

// TestDescribeHasTheTimesOfTheSession: the idle timeout moves with requests.
func TestDescribeHasTheTimesOfTheSession(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b := newBrowser(t)
	b.signIn(s, p)
	first, err := s.Describe(b.request(http.MethodGet, "/"))
	if err != nil || first.End.Sub(first.Started) != 12*time.Hour || first.IdleEnd.Sub(first.Started) != time.Hour {
		t.Errorf("Describe = %+v, %v, want 12h, and 1h without requests", first, err)
	}
	s.SetIntervals(0, time.Hour, 0)
	if _, err := b.identify(s); err != nil {
		t.Fatal(err)
	}
	second, err := s.Describe(b.request(http.MethodGet, "/"))
	if err != nil || !second.IdleEnd.After(first.IdleEnd) || !second.End.Equal(first.End) {
		t.Errorf("Describe after a request = %+v, %v, want a later idle end than %s", second, err, first.IdleEnd)
	}
}
