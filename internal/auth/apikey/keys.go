// Package apikey authenticates callers by API keys that a file lists.
//
//	keys:
//	  - sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8   # or key: …
//	    tenant: shop        # default: the tenant default
//	    subject: nightly-report
//	    roles: [finance]
//
// The file is read once. It may list the SHA-256 of a key instead of the key, so that it need not
// be secret.
package apikey

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/auth"
)

// Bounds of a file: its bytes, the number of its keys, and the minimum length of a key in bytes. A
// SHA-256 without salt protects only keys that cannot be guessed.
const (
	maxFile     = 1 << 20
	maxKeys     = 1000
	minKeyBytes = 20
)

// Keys are the keys of a file, by digest, with their principals at the same index. They are never
// changed, so they are safe for concurrent use.
type Keys struct {
	digests    [][sha256.Size]byte
	principals []auth.Principal
}

// entry is a key in the file.
type entry struct {
	Key     string   `yaml:"key"`
	SHA256  string   `yaml:"sha256"`
	Tenant  string   `yaml:"tenant"`
	Subject string   `yaml:"subject"`
	Roles   []string `yaml:"roles"`
}

// Load reads a file, YAML or JSON. Its errors never contain a key.
func Load(name string) (*Keys, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	body, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxFile {
		return nil, fmt.Errorf("%s: must have at most %d bytes", name, maxFile)
	}
	keys, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return keys, nil
}

// parse decodes a file.
func parse(body []byte) (*Keys, error) {
	var file struct {
		Keys []entry `yaml:"keys"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, errors.New("must be a list under keys, each with sha256 or key, tenant, subject and roles") // the YAML decoder's own error may quote a key
	}
	if n := len(file.Keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("keys must have 1 to %d entries, not %d", maxKeys, n)
	}
	k := &Keys{}
	for i, e := range file.Keys {
		if err := k.add(e); err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
	}
	return k, nil
}

// add validates an entry and adds it.
func (k *Keys) add(e entry) error {
	digest, err := e.digest()
	if err != nil {
		return err
	}
	p := auth.Principal{Tenant: cmp.Or(e.Tenant, auth.TenantDefault), Subject: e.Subject, Roles: e.Roles}
	if p.Subject == "" {
		return errors.New("subject is missing")
	}
	if err := p.Check(); err != nil {
		return err
	}
	if k.find(digest) >= 0 {
		return errors.New("repeats the key of an earlier entry")
	}
	k.digests, k.principals = append(k.digests, digest), append(k.principals, p)
	return nil
}

// digest returns the digest of the entry's key.
func (e entry) digest() (digest [sha256.Size]byte, err error) {
	switch {
	case (e.Key == "") == (e.SHA256 == ""):
		return digest, errors.New("must have either key or sha256")
	case e.Key != "" && len(e.Key) < minKeyBytes:
		return digest, fmt.Errorf("key must have at least %d bytes", minKeyBytes)
	case e.Key != "" && !auth.IsToken(e.Key):
		return digest, errors.New("key may have only letters, digits and -._~+/, and = at its end")
	case e.Key != "":
		return sha256.Sum256([]byte(e.Key)), nil
	}
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil || len(sum) != len(digest) {
		return digest, errors.New("sha256 must have 64 hexadecimal digits")
	}
	return [sha256.Size]byte(sum), nil
}

// find returns the index of a digest; -1 = it is not listed. It compares all digests in constant
// time, so its duration does not depend on the keys.
func (k *Keys) find(digest [sha256.Size]byte) int {
	found := -1
	for i := range k.digests {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(k.digests[i][:], digest[:]), i, found)
	}
	return found
}

// Authenticate implements auth.Authenticator. Identities do not expire.
func (k *Keys) Authenticate(r *http.Request) (auth.Identity, error) {
	key, err := auth.Bearer(r.Header)
	if err != nil {
		return auth.Identity{}, err
	}
	i := k.find(sha256.Sum256([]byte(key)))
	if i < 0 {
		return auth.Identity{}, fmt.Errorf("%w: the key is not listed", auth.ErrInvalid)
	}
	return auth.Identity{Principal: k.principals[i]}, nil
}
