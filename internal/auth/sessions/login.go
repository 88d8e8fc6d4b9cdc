package sessions

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/perdure/perdure/internal/auth"
)

// loginTTL is how long a sign-in at the provider may take.
const loginTTL = 10 * time.Minute

// maxReturnBytes bounds the path to which a user returns after sign-in, in bytes.
const maxReturnBytes = 512

// ErrReturn tells that a return path is not a path of this server.
var ErrReturn = errors.New("must be a path of this server that begins with one slash, without control characters")

// login is a sign-in that has begun. It is not stored: the parameter state of the authorization
// request contains it, sealed with a key that only the browser's cookie has. So a state works only
// in the browser that began the sign-in, any number of sign-ins may be pending, and requests without
// credentials write nothing.
type login struct {
	// Return is the path to which the user returns.
	Return string `json:"r"`
	// Nonce and Verifier are those of the authorization request.
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	// Expires is in seconds since 1970.
	Expires int64 `json:"e"`
}

// loginKeyBytes is the length of the key in the cookie.
const loginKeyBytes = 32

// loginPurpose is authenticated with each login (domain separation).
var loginPurpose = []byte("perdure sign-in 1")

// encoding is strict about trailing bits, so that each value has one text.
var encoding = base64.RawURLEncoding.Strict()

// newLoginKey returns the text of a new key.
func newLoginKey() string {
	key := make([]byte, loginKeyBytes)
	_, _ = rand.Read(key) // never fails
	return encoding.EncodeToString(key)
}

// isLoginKey reports whether a text is a key.
func isLoginKey(text string) bool {
	key, err := encoding.DecodeString(text)
	return err == nil && len(key) == loginKeyBytes
}

// seal returns the state of a login: AES-256-GCM in base64url.
func (l *login) seal(key string) (state string, err error) {
	body, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("sessions: encode: %w", err)
	}
	aead, err := loginCipher(key)
	if err != nil {
		return "", err
	}
	return encoding.EncodeToString(aead.Seal(nil, nil, body, loginPurpose)), nil //nolint:gosec // because the cipher makes a random nonce
}

// maxState bounds a state, in bytes: that of the longest return path is shorter.
const maxState = 4 << 10

// openLogin opens a state. Errors: auth.ErrInvalid, auth.ErrExpired.
func openLogin(key, state string, now time.Time) (*login, error) {
	aead, err := loginCipher(key)
	if err != nil {
		return nil, err
	}
	sealed, err := encoding.DecodeString(state)
	if err != nil || len(state) > maxState {
		return nil, fmt.Errorf("%w: the state has another form", auth.ErrInvalid)
	}
	body, err := aead.Open(nil, nil, sealed, loginPurpose)
	if err != nil {
		return nil, fmt.Errorf("%w: the state is not of this browser", auth.ErrInvalid)
	}
	var l login
	if err := json.Unmarshal(body, &l); err != nil { // of another version of Perdure
		return nil, fmt.Errorf("%w: the state has another form", auth.ErrInvalid)
	}
	if now.Unix() >= l.Expires {
		return nil, fmt.Errorf("%w: the sign-in has taken longer than %s", auth.ErrExpired, loginTTL)
	}
	return &l, nil
}

// loginCipher returns the cipher of a key. Errors: auth.ErrInvalid.
func loginCipher(key string) (cipher.AEAD, error) {
	decoded, err := encoding.DecodeString(key)
	if err != nil || len(decoded) != loginKeyBytes {
		return nil, fmt.Errorf("%w: the cookie of the sign-in has another form", auth.ErrInvalid)
	}
	block, err := aes.NewCipher(decoded)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return aead, nil
}

// CheckReturn checks the path to which a user returns. It refuses whatever a browser could read as
// the URL of another host, such as //host or /\host. Errors: ErrReturn.
func CheckReturn(path string) error {
	u, err := url.Parse(path)
	switch {
	case err != nil || u.Scheme != "" || u.Host != "" || u.User != nil:
	case len(path) > maxReturnBytes || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsRune(path, '\\'):
	case strings.ContainsFunc(path, func(c rune) bool { return c > unicode.MaxASCII || unicode.IsControl(c) || c == ' ' }):
	default:
		return nil
	}
	return ErrReturn
}
