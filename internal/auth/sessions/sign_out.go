package sessions

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
)

// SignOut ends the session of a request. It returns the URL at which the browser ends the user's
// session at the provider, too, and the cookie that removes the one of the session. A request
// without a session is no error: its location is the root of the API, as is that of a provider which
// cannot end sessions.
//
// Errors: auth.ErrCrossSite, auth.ErrUnavailable.
func (s *Sessions) SignOut(r *http.Request) (location string, cookie *http.Cookie, err error) {
	location, err = s.signOut(r)
	if err != nil {
		s.refused(r, err)
	}
	return location, s.cookie(sessionCookie, "", -1), err
}

func (s *Sessions) signOut(r *http.Request) (location string, err error) {
	home := s.cfg.PublicURL + "/"
	// Also without a cookie: browsers do not send it with a form of another site, but would accept its
	// removal.
	if err := s.checkSite(r); err != nil {
		return "", err
	}
	token, err := s.sentToken(r)
	if errors.Is(err, auth.ErrNoCredentials) || errors.Is(err, auth.ErrSessionEnded) {
		return home, nil
	}
	if err != nil {
		return "", err
	}
	_, id, rec, err := s.find(r.Context(), token)
	if errors.Is(err, auth.ErrSessionEnded) {
		return home, nil
	}
	if err == nil {
		err = s.end(r.Context(), id, EndedByUser)
	}
	if err != nil {
		return "", err
	}
	// The session has ended here, whether the provider can be asked or not.
	if location, err = s.cfg.Client.SignOutURL(r.Context(), rec.IDToken, home); err != nil || location == "" {
		return home, nil //nolint:nilerr // because the user is signed out of Perdure
	}
	return location, nil
}

// EndByProvider ends the sessions that a logout token names. A token whose ID was used before is
// refused. Errors: auth.ErrInvalid, auth.ErrExpired, auth.ErrUnavailable.
func (s *Sessions) EndByProvider(r *http.Request, logoutToken string) error {
	err := s.endByProvider(r, logoutToken)
	if err != nil {
		s.refused(r, err)
	}
	return err
}

func (s *Sessions) endByProvider(r *http.Request, logoutToken string) error {
	ctx := r.Context()
	logout, err := s.cfg.Client.VerifyLogout(ctx, logoutToken)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(logout.ID))
	key := logoutPrefix + encoding.EncodeToString(digest[:])
	used, _, err := s.bucket.readLeader(ctx, key)
	switch {
	case err != nil:
		return err
	case used != nil:
		return fmt.Errorf("%w: the logout token was used before", auth.ErrInvalid)
	case !s.watch.Current():
		return fmt.Errorf("%w: the index of sessions lags", auth.ErrUnavailable)
	}
	for _, id := range s.index.endedBy(logout) {
		if err := s.end(ctx, id, EndedByProvider); err != nil {
			return err // the ID is not recorded yet, so the provider may repeat the request
		}
	}
	return s.bucket.replace(ctx, key, []byte("used"), logout.Expires)
}
