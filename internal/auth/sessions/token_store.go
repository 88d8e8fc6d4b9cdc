package sessions

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/alexedwards/scs/v2"
)

// tokenStore is the store of scs, over the bucket. scs calls it with the digests of tokens.
type tokenStore struct{ bucket *bucket }

// storedToken is a value of tokenStore. Expires is exact; the TTL of the key is in seconds.
type storedToken struct {
	Expires time.Time `json:"expires"`
	Data    []byte    `json:"data"`
}

// FindCtx returns the data of a token that has not expired.
func (s tokenStore) FindCtx(ctx context.Context, digest string) (data []byte, found bool, err error) {
	value, _, err := s.bucket.read(ctx, tokenPrefix+digest)
	if err != nil || value == nil {
		return nil, false, err
	}
	var stored storedToken
	if err := json.Unmarshal(value, &stored); err != nil || !time.Now().Before(stored.Expires) {
		return nil, false, nil //nolint:nilerr // because a value of another version is a token that is not known
	}
	return stored.Data, true, nil
}

// CommitCtx stores the data of a token until it expires.
func (s tokenStore) CommitCtx(ctx context.Context, digest string, data []byte, expires time.Time) error {
	value, err := json.Marshal(storedToken{Expires: expires, Data: data})
	if err != nil {
		return err
	}
	return s.bucket.replace(ctx, tokenPrefix+digest, value, expires)
}

// DeleteCtx deletes a token.
func (s tokenStore) DeleteCtx(ctx context.Context, digest string) error {
	return s.bucket.remove(ctx, tokenPrefix+digest)
}

// Find completes the interface of a store. scs calls FindCtx instead.
func (s tokenStore) Find(digest string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), digest)
}

// Commit completes the interface of a store. scs calls CommitCtx instead.
func (s tokenStore) Commit(digest string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), digest, data, expires)
}

// Delete completes the interface of a store. scs calls DeleteCtx instead.
func (s tokenStore) Delete(digest string) error { return s.DeleteCtx(context.Background(), digest) }

// sessionKey is the key of the session's ID in the data of a token.
const sessionKey = "session"

// tokenPattern is the syntax of the tokens that scs makes: 32 random bytes in base64url.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// newTokenManager returns the manager of tokens. It stores a token under the token's digest. It is
// not made by scs.New, which starts a goroutine for a store in memory.
func newTokenManager(b *bucket, lifetime time.Duration) *scs.SessionManager {
	return &scs.SessionManager{Store: tokenStore{b}, Lifetime: lifetime, Codec: scs.GobCodec{}, HashTokenInStore: true}
}
