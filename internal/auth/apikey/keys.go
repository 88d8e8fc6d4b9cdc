// Package apikey authenticates callers by API keys that a file lists.
//
//	keys:
//	  - sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8   # or key: …
//	    tenant: shop        # default: the tenant default
//	    subject: nightly-report
//	    roles: [finance]
//	    expires: 2027-01-31T00:00:00Z   # default: never
//
// The file may list the SHA-256 of a key instead of the key, so that it need not be secret. It may
// change while the process runs: Load reads it again, and revokes the keys that it has lost.
package apikey

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// Keys are the keys of a file. They are safe for concurrent use.
type Keys struct {
	// Changes tells which contents of the file are in use. The names of its entries are those of
	// principals, tenant/subject.
	filewatch.Changes

	file    string
	loading sync.Mutex // held by Load
	current atomic.Pointer[table]
}

// New returns the keys of a file, YAML or JSON, which Load reads. Until then no key is valid.
func New(file string) *Keys {
	k := &Keys{file: file}
	k.current.Store(&table{})
	return k
}

// Load reads the file. It revokes each key that the file has lost, or that has another principal or
// expiry than before, and returns the number of keys. After an error the earlier keys stay valid.
// The error never contains a key.
func (k *Keys) Load() (count int, err error) {
	k.loading.Lock()
	defer k.loading.Unlock()
	t, err := read(k.file)
	if err != nil {
		return 0, err
	}
	earlier := k.current.Load()
	t.keepFrom(earlier)
	k.current.Store(t)
	t.revoke(earlier)
	k.Take(t.content, t.entries())
	return len(t.keys), nil
}

// Authenticate implements auth.Authenticator.
func (k *Keys) Authenticate(r *http.Request) (auth.Identity, error) {
	token, err := auth.Bearer(r.Header)
	if err != nil {
		return auth.Identity{}, err
	}
	t := k.current.Load()
	i := t.find(sha256.Sum256([]byte(token)))
	if i < 0 {
		return auth.Identity{}, fmt.Errorf("%w: the key is not listed", auth.ErrInvalid)
	}
	found := t.keys[i]
	if !found.expires.IsZero() && !time.Now().Before(found.expires) {
		return auth.Identity{}, fmt.Errorf("%w: on %s", auth.ErrExpired, found.expires.UTC().Format(time.RFC3339))
	}
	return auth.Identity{Principal: found.principal, Expires: found.expires, Valid: found.valid}, nil
}
