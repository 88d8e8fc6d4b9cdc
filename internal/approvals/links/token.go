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
	// ErrInvalid: the token is not one of ours.
	ErrInvalid = errors.New("links: invalid token")
	// ErrExpired: it was, until its time was over.
	ErrExpired = errors.New("links: the link has expired")
)

// MaxToken bounds a token, in bytes: ids may be long.
const MaxToken = 16 << 10

// purpose is signed along, so that nothing else that is signed with the key is a token.
const purpose = "perdure link 1\n"

// Token makes a link, with a nonce of its own.
func (k *Keeper) Token(l Link) (string, error) {
	l.Nonce, l.Expires = rand.Text(), l.Expires.UTC().Truncate(time.Second)
	body, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("links: encode: %w", err)
	}
	token := encoding.EncodeToString(body) + "." + encoding.EncodeToString(k.sign(body))
	if len(token) > MaxToken {
		return "", fmt.Errorf("links: the link would have %d bytes", len(token))
	}
	return token, nil
}

// Read returns what a token says. It fails with ErrInvalid, or with ErrExpired beside what it said.
func (k *Keeper) Read(token string) (Link, error) {
	said, signature, ok := strings.Cut(token, ".")
	if !ok || len(token) > MaxToken {
		return Link{}, ErrInvalid
	}
	body, err := encoding.DecodeString(said)
	mac, failed := encoding.DecodeString(signature)
	if err != nil || failed != nil || !hmac.Equal(mac, k.sign(body)) {
		return Link{}, ErrInvalid
	}
	var l Link
	if err := json.Unmarshal(body, &l); err != nil { // of another version
		return Link{}, ErrInvalid
	}
	if !time.Now().Before(l.Expires) {
		return l, ErrExpired
	}
	return l, nil
}

// encoding is strict: a token has one form.
var encoding = base64.RawURLEncoding.Strict()

func (k *Keeper) sign(body []byte) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(purpose))
	mac.Write(body)
	return mac.Sum(nil)
}
