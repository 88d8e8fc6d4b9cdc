// Package operator opens the keys of the operator, which encrypt those of tenants (package
// encryption). Its imports have the clients of all key services, so only programs link it.
package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"

	"github.com/hashicorp/vault/api"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"        // scheme awskms
	_ "gocloud.dev/secrets/azurekeyvault" // scheme azurekeyvault
	_ "gocloud.dev/secrets/gcpkms"        // scheme gcpkms
	"gocloud.dev/secrets/hashivault"
	_ "gocloud.dev/secrets/localsecrets" // scheme base64key

	"github.com/perdure/perdure/internal/encryption"
)

// Open opens the keys with these URLs, separated by white space. getenv returns VAULT_ADDR and
// VAULT_TOKEN; the clients of the other key services read the environment. Errors do not contain keys.
func Open(ctx context.Context, text string, getenv func(string) string) ([]encryption.OperatorKey, error) {
	urls, err := encryption.ParseURLs(text)
	if err != nil {
		return nil, err
	}
	keys := make([]encryption.OperatorKey, len(urls))
	for i, u := range urls {
		keys[i].ID = identify(u)
		switch u.Scheme {
		case "file":
			keys[i].Keeper, err = openFile(u.Path)
		case hashivault.Scheme:
			keys[i].Keeper, err = openVault(u, getenv)
		default:
			keys[i].Keeper, err = secrets.OpenKeeper(ctx, u.String())
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	return keys, nil
}

// identify returns the ID of a key: a part of the digest of its URL. The options of a key service do
// not change it.
func identify(u *url.URL) string {
	sum := sha256.Sum256([]byte(u.Scheme + "://" + u.Host + u.Path))
	return hex.EncodeToString(sum[:6])
}

// fileKey encrypts with a keyset of Tink in a file.
type fileKey struct{ aead tink.AEAD }

// openFile reads a keyset of Tink in JSON.
func openFile(name string) (fileKey, error) {
	f, err := os.Open(name) //nolint:gosec // the operator's file
	if err != nil {
		return fileKey{}, err
	}
	defer func() { _ = f.Close() }()
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(f))
	if err != nil {
		return fileKey{}, fmt.Errorf("%s is not a keyset of Tink in JSON: %w", name, err)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return fileKey{}, fmt.Errorf("%s is not a keyset for AEAD: %w", name, err)
	}
	return fileKey{primitive}, nil
}

// Encrypt implements encryption.OperatorKey.Keeper.
func (k fileKey) Encrypt(_ context.Context, plain []byte) ([]byte, error) {
	return k.aead.Encrypt(plain, nil)
}

// Decrypt implements encryption.OperatorKey.Keeper.
func (k fileKey) Decrypt(_ context.Context, ciphertext []byte) ([]byte, error) {
	return k.aead.Decrypt(ciphertext, nil)
}

// openVault opens a key of Vault's secrets engine "transit", or of the engine that the URL names.
func openVault(u *url.URL, getenv func(string) string) (*secrets.Keeper, error) {
	address, token := getenv("VAULT_ADDR"), getenv("VAULT_TOKEN")
	if address == "" || token == "" {
		return nil, errors.New("hashivault:// needs VAULT_ADDR and VAULT_TOKEN")
	}
	client, err := hashivault.Dial(context.Background(), &hashivault.Config{Token: token, APIConfig: api.Config{Address: address}})
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	options := hashivault.KeeperOptions{Engine: u.Query().Get("engine")}
	return hashivault.OpenKeeper(client, path.Join(u.Host, u.Path), &options), nil
}
