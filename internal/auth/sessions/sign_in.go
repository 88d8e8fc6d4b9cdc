package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
)

// ErrFull tells that there are as many sessions as there may be.
var ErrFull = fmt.Errorf("there are %d sessions, and no more may begin", maxSessions)

// maxExchanges bounds the concurrent requests to the provider for sign-ins of an API process.
const maxExchanges = 64

// Begin begins a sign-in: it returns the URL of the provider to which the browser goes, and the
// cookie for the way back. Errors: ErrReturn, auth.ErrUnavailable.
func (s *Sessions) Begin(r *http.Request, returnTo string) (location string, cookie *http.Cookie, err error) {
	if err := CheckReturn(returnTo); err != nil {
		return "", nil, err
	}
	// The browser keeps its key, so that another tab can complete its own sign-in.
	key := newLoginKey()
	if sent := r.CookiesNamed(s.cookieName(loginCookie)); len(sent) == 1 && isLoginKey(sent[0].Value) {
		key = sent[0].Value
	}
	l := &login{Return: returnTo, Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Expires: time.Now().Add(loginTTL).Unix()}
	state, err := l.seal(key)
	if err != nil {
		return "", nil, err
	}
	if location, err = s.cfg.Client.SignInURL(r.Context(), state, l.Nonce, l.Verifier); err != nil {
		return "", nil, err
	}
	return location, s.cookie(loginCookie, key, loginTTL), nil
}

// Complete completes a sign-in by the response of the provider, which the browser brings: it begins
// a session with a new token, and ends the session that the browser had before. It returns the path
// to which the user returns, and the cookie of the session.
//
// Errors: auth.ErrInvalid, auth.ErrExpired, oidc.ErrRefused, ErrFull, auth.ErrUnavailable.
func (s *Sessions) Complete(r *http.Request) (returnTo string, cookie *http.Cookie, err error) {
	returnTo, cookie, err = s.complete(r)
	if err != nil {
		s.refused(r, err)
	}
	return returnTo, cookie, err
}

func (s *Sessions) complete(r *http.Request) (returnTo string, cookie *http.Cookie, err error) {
	query, key := r.URL.Query(), ""
	if sent := r.CookiesNamed(s.cookieName(loginCookie)); len(sent) == 1 {
		key = sent[0].Value
	}
	l, err := openLogin(key, query.Get("state"), time.Now())
	if err != nil {
		return "", nil, err
	}
	if err := s.cfg.Client.CheckIssuer(r.Context(), query.Get("iss")); err != nil {
		return "", nil, err
	}
	if refusal := query.Get("error"); refusal != "" {
		return "", nil, fmt.Errorf("%w: %.100q", oidc.ErrRefused, refusal)
	}
	if !s.exchanges.TryAcquire(1) {
		return "", nil, fmt.Errorf("%w: %d users sign in concurrently", auth.ErrUnavailable, maxExchanges)
	}
	defer s.exchanges.Release(1)
	grant, err := s.cfg.Client.Exchange(r.Context(), query.Get("code"), l.Nonce, l.Verifier)
	if err != nil {
		return "", nil, err
	}
	cookie, err = s.begin(r, grant)
	return l.Return, cookie, err
}

// begin begins the session of a grant.
func (s *Sessions) begin(r *http.Request, grant oidc.Grant) (*http.Cookie, error) {
	ctx := r.Context()
	if s.index.count() >= maxSessions {
		return nil, ErrFull
	}
	if err := s.endEarlier(r, grant.Subject); err != nil {
		return nil, err
	}
	now := time.Now()
	rec := &record{Started: now, Deadline: now.Add(s.cfg.Lifetime), Active: now, Rotated: now}
	rec.setGrant(grant, now)
	id := rand.Text()
	if err := s.store(ctx, id, rec); err != nil {
		return nil, err
	}
	cookie, err := s.issueToken(ctx, id, rec.Deadline)
	if err != nil {
		return nil, err
	}
	s.signedIn(ctx, rec.Principal)
	return cookie, nil
}

// endEarlier ends the session of the browser, and the oldest sessions of the user beyond the bound.
func (s *Sessions) endEarlier(r *http.Request, subject string) error {
	if token, err := s.sentToken(r); err == nil {
		_, id, _, err := s.find(r.Context(), token)
		if err == nil {
			err = s.end(r.Context(), id, EndedBySignIn)
		}
		if err != nil && !errors.Is(err, auth.ErrSessionEnded) {
			return err
		}
	}
	ids := s.index.of(subject)
	for _, id := range ids[:max(0, len(ids)+1-maxUserSessions)] {
		if err := s.end(r.Context(), id, EndedByLimit); err != nil {
			return err
		}
	}
	return nil
}

// end ends a session for all of its tokens and on all API processes. Its streams end when the
// processes learn of it. A session that has ended before is no error.
func (s *Sessions) end(ctx context.Context, id string, reason End) error {
	rec, err := s.newest(ctx, id)
	if errors.Is(err, auth.ErrSessionEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.bucket.remove(ctx, sessionPrefix+id); err != nil {
		return err
	}
	s.signedOut(ctx, rec.Principal, reason)
	return nil
}
