package links

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of tokens.
var (
	// ErrInvalid: the token was not made with this key, or was changed.
	ErrInvalid = errors.New("links: invalid token")
	// ErrExpired: the token is authentic, but its time has passed.
	ErrExpired = errors.New("links: the link has expired")
	// ErrTooLarge: the token of a link would exceed MaxToken.
	ErrTooLarge = errors.New("links: the token would be too large")
)

// MaxToken bounds a token, in bytes. It is large because IDs of threads and subjects may be long.
const MaxToken = 16 << 10

// purpose is a prefix of the signed bytes (domain separation): another signature with the same key
// is never a valid token.
const purpose = "perdure link 1\n"

// Token returns the token of a link: base64url of its JSON, ".", base64url of the HMAC-SHA256. It
// sets a new Nonce, and truncates Expires to seconds. The error is ErrTooLarge if the token would
// exceed MaxToken.
func (k *Keeper) Token(l Link) (string, error) {
	l.Nonce, l.Expires = rand.Text(), l.Expires.UTC().Truncate(time.Second)
	body, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("links: encode: %w", err)
	}
	token := encoding.EncodeToString(body) + "." + encoding.EncodeToString(k.sign(body))
	if len(token) > MaxToken {
		return "", fmt.Errorf("%w: %d bytes", ErrTooLarge, len(token))
	}
	return token, nil
}

// Read verifies a token and returns its link. It does not check whether the link was used. Errors:
// ErrInvalid; ErrExpired, and then the link is returned as well.
func (k *Keeper) Read(token string) (Link, error) {
	text, signature, ok := strings.Cut(token, ".")
	if !ok || len(token) > MaxToken {
		return Link{}, ErrInvalid
	}
	body, err := encoding.DecodeString(text)
	mac, macErr := encoding.DecodeString(signature)
	if err != nil || macErr != nil || !hmac.Equal(mac, k.sign(body)) {
		return Link{}, ErrInvalid
	}
	var l Link
	if err := json.Unmarshal(body, &l); err != nil { // signed by another version of Perdure
		return Link{}, ErrInvalid
	}
	if !time.Now().Before(l.Expires) {
		return l, ErrExpired
	}
	return l, nil
}

// encoding is strict about trailing bits, so that each token has exactly one valid text.
var encoding = base64.RawURLEncoding.Strict()

// sign returns the HMAC-SHA256 of a token's body.
func (k *Keeper) sign(body []byte) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(purpose))
	mac.Write(body)
	return mac.Sum(nil)
}
