package sessions

import (
	"net/http"
	"time"
)

// SetIntervals sets the intervals of renewals, which are constants otherwise.
func (s *Sessions) SetIntervals(touch, rotate, grace time.Duration) {
	s.touchInterval, s.rotateInterval, s.tokenGrace = touch, rotate, grace
}

// MaxUserSessions is the bound of the sessions of one user.
const MaxUserSessions = maxUserSessions

// SealedFor returns the state of a login with a return path, and the cookie with its key.
func (s *Sessions) SealedFor(returnTo string, expires time.Time) (state string, cookie *http.Cookie) {
	l, key := &login{Return: returnTo, Nonce: "n", Verifier: "v", Expires: expires.Unix()}, newLoginKey()
	state, err := l.seal(key)
	if err != nil {
		return "", nil
	}
	return state, s.cookie(loginCookie, key, loginTTL)
}

// Contents returns the bucket's keys and values as one text.
func (s *Sessions) Contents(r *http.Request) (keys, values string, err error) {
	list, err := s.bucket.kv.Keys(r.Context())
	if err != nil {
		return "", "", err
	}
	for _, key := range list {
		entry, err := s.bucket.kv.Get(r.Context(), key)
		if err != nil {
			return "", "", err
		}
		keys, values = keys+key+"\n", values+string(entry.Value())+"\n"
	}
	return keys, values, nil
}

// Expire makes the claims of the session of a request stale.
func (s *Sessions) Expire(r *http.Request) error {
	token, err := s.sentToken(r)
	if err != nil {
		return err
	}
	ctx, id, rec, err := s.find(r.Context(), token)
	if err != nil {
		return err
	}
	rec.Stale = time.Now().Add(-time.Second)
	return s.store(ctx, id, rec)
}
