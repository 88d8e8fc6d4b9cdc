package sessions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
)

// record is the stored state of a session.
type record struct {
	Principal auth.Principal `json:"principal"`
	// Subject and ProviderSession are the claims sub and sid.
	Subject         string `json:"sub"`
	ProviderSession string `json:"sid,omitempty"`
	// IDToken is a hint for the provider at sign-out. RefreshToken renews the claims; "" = they stay
	// those of sign-in.
	IDToken      string `json:"idToken,omitempty"`
	RefreshToken string `json:"refreshToken,omitempty"`

	// Started is when the user signed in, Deadline when the session ends at the latest.
	Started  time.Time `json:"started"`
	Deadline time.Time `json:"deadline"`
	// Active is when the session had its last request, to touchInterval.
	Active time.Time `json:"active"`
	// Rotated is when the session got its last token.
	Rotated time.Time `json:"rotated"`
	// Stale is when the claims must be renewed, if there is a RefreshToken. Until Refreshing an API
	// process renews them, and others wait.
	Stale      time.Time `json:"stale"`
	Refreshing time.Time `json:"refreshing,omitzero"`

	// revision is the record's revision in the bucket; 0 = it is not stored yet.
	revision uint64
}

// Bounds of Stale after a renewal: minFresh limits the requests to a provider whose tokens expire at
// once, defaultFresh is for a provider that does not tell when they expire.
const (
	minFresh     = time.Second
	defaultFresh = 5 * time.Minute
)

// setGrant stores a grant that the provider issued at a time.
func (r *record) setGrant(g oidc.Grant, now time.Time) {
	r.Principal, r.Subject, r.ProviderSession = g.Principal, g.Subject, g.SessionID
	r.IDToken, r.RefreshToken, r.Stale = g.IDToken, g.RefreshToken, g.Expires
	if r.Stale.IsZero() {
		r.Stale = now.Add(defaultFresh)
	}
	if least := now.Add(minFresh); r.Stale.Before(least) {
		r.Stale = least
	}
}

// grant returns the grant that the record has.
func (r *record) grant() oidc.Grant {
	return oidc.Grant{Principal: r.Principal, Subject: r.Subject, SessionID: r.ProviderSession, IDToken: r.IDToken, RefreshToken: r.RefreshToken, Expires: r.Stale}
}

// isStale reports whether the claims must be renewed.
func (r *record) isStale(now time.Time) bool { return r.RefreshToken != "" && !now.Before(r.Stale) }

// ends returns when the session ends without further requests.
func (r *record) ends(idle time.Duration) time.Time {
	if at := r.Active.Add(idle); at.Before(r.Deadline) {
		return at
	}
	return r.Deadline
}

// encode returns the record as JSON.
func (r *record) encode() ([]byte, error) {
	value, err := json.Marshal(r) //nolint:gosec // because the bucket has the refresh token
	if err != nil {
		return nil, fmt.Errorf("sessions: encode: %w", err)
	}
	return value, nil
}

// decodeRecord decodes a stored record; nil = there is none, or it is of another version of Perdure.
func decodeRecord(value []byte, revision uint64) *record {
	r := &record{}
	if value == nil || json.Unmarshal(value, r) != nil {
		return nil
	}
	r.revision = revision
	return r
}
