package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// Sessions are the sessions of browsers. Without a ClientID there are none.
type Sessions struct {
	// ClientID, ClientSecret and Scopes are those of Perdure at the provider. ClientSecret reads the
	// secret at each call; nil = the client is public.
	ClientID     string
	ClientSecret func() (string, error)
	Scopes       []string
	// Idle and Lifetime are the maximum times without a request, and in total.
	Idle, Lifetime time.Duration
}

// check refuses settings with which no browser could sign in. mode is the mode of authentication,
// and publicURL the base URL of the API; "" = the process finds its own address.
func (s Sessions) check(mode, publicURL string) error {
	u, err := url.Parse(publicURL)
	switch {
	case s.ClientID == "":
		return nil
	case mode != AuthOIDC:
		return &VariableError{Name: clientIDName, Err: errors.New("must not be set unless PERDURE_AUTH is oidc")}
	case err != nil || u.Path != "" || u.Scheme == "http" && !auth.IsLoopback(u.Host):
		return &VariableError{Name: publicURLName, Err: fmt.Errorf("must begin with https, except on loopback, and have no path, when %s is set", clientIDName)}
	case s.Idle > s.Lifetime:
		return &VariableError{Name: "PERDURE_SESSION_IDLE", Err: errors.New("must not be above PERDURE_SESSION_LIFETIME")}
	case !slices.Contains(s.Scopes, "openid"):
		return &VariableError{Name: "PERDURE_OIDC_SCOPES", Err: errors.New("must contain openid")}
	}
	return nil
}
