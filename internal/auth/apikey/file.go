package apikey

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// Bounds of a file: its bytes, the number of its keys, and the minimum length of a key in bytes. A
// SHA-256 without salt protects only keys that cannot be guessed.
const (
	maxFile     = 1 << 20
	maxKeys     = 1000
	minKeyBytes = 20
)

// table has the keys of one content of the file, by digest. It is not changed after it is built.
type table struct {
	digests [][sha256.Size]byte
	keys    []*key // at the index of their digest
	content string // digest of the file
}

// entries returns the principals of the keys, each with what its keys are and permit, as
// filewatch.Changes compares them.
func (t *table) entries() map[string]string {
	all := map[string]string{}
	for i, k := range t.keys {
		p := k.principal
		all[p.Tenant+"/"+p.Subject] += fmt.Sprintf("%x %q %s\n", t.digests[i], p.Roles, k.expires.UTC().Format(time.RFC3339))
	}
	return all
}

// key is a key while it has the same principal and the same expiry.
type key struct {
	principal auth.Principal
	expires   time.Time       // zero = never
	valid     context.Context // ends with revoke
	revoke    context.CancelFunc
}

// same reports whether two keys give the same rights.
func (k *key) same(other *key) bool {
	return k.principal.Tenant == other.principal.Tenant && k.principal.Subject == other.principal.Subject &&
		slices.Equal(k.principal.Roles, other.principal.Roles) && k.expires.Equal(other.expires)
}

// entry is a key in the file.
type entry struct {
	Key     string   `yaml:"key"`
	SHA256  string   `yaml:"sha256"`
	Tenant  string   `yaml:"tenant"`
	Subject string   `yaml:"subject"`
	Roles   []string `yaml:"roles"`
	Expires string   `yaml:"expires"`
}

// read reads a file, YAML or JSON. Its errors never contain a key.
func read(name string) (*table, error) {
	body, err := yamlfile.Read(name, maxFile)
	if err != nil {
		return nil, err
	}
	t, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.content = filewatch.DigestOf(body)
	return t, nil
}

// parse decodes a file. An empty list is valid, because the last key may be revoked, but a file
// without a list is not: it may have been cut off.
func parse(body []byte) (*table, error) {
	var file struct {
		Keys []entry `yaml:"keys"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil || file.Keys == nil {
		return nil, errors.New("must be a list under keys, each with sha256 or key, tenant, subject, roles and expires") // the YAML decoder's own error may quote a key
	}
	if n := len(file.Keys); n > maxKeys {
		return nil, fmt.Errorf("keys must have at most %d entries, not %d", maxKeys, n)
	}
	t := &table{}
	for i, e := range file.Keys {
		if err := t.add(e); err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
	}
	return t, nil
}

// add validates an entry and adds it.
func (t *table) add(e entry) error {
	digest, err := e.digest()
	if err != nil {
		return err
	}
	k := &key{principal: auth.Principal{Tenant: cmp.Or(e.Tenant, auth.TenantDefault), Subject: e.Subject, Roles: e.Roles}}
	if e.Subject == "" {
		return errors.New("subject is missing")
	}
	if err := k.principal.Check(); err != nil {
		return err
	}
	if e.Expires != "" {
		if k.expires, err = time.Parse(time.RFC3339, e.Expires); err != nil {
			return errors.New("expires must be a time such as 2027-01-31T00:00:00Z")
		}
	}
	if t.find(digest) >= 0 {
		return errors.New("repeats the key of an earlier entry")
	}
	k.valid, k.revoke = context.WithCancel(context.Background())
	t.digests, t.keys = append(t.digests, digest), append(t.keys, k)
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
func (t *table) find(digest [sha256.Size]byte) int {
	found := -1
	for i := range t.digests {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(t.digests[i][:], digest[:]), i, found)
	}
	return found
}

// keepFrom takes over the keys of an earlier table that have the same rights in both. It is called
// before the table has users.
func (t *table) keepFrom(earlier *table) {
	for i, digest := range earlier.digests {
		if at := t.find(digest); at >= 0 && t.keys[at].same(earlier.keys[i]) {
			t.keys[at] = earlier.keys[i]
		}
	}
}

// revoke revokes the keys of an earlier table that the table does not have.
func (t *table) revoke(earlier *table) {
	for _, k := range earlier.keys {
		if !slices.Contains(t.keys, k) {
			k.revoke()
		}
	}
}
