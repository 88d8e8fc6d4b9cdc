package encryption

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// keys is a decrypted keyset, of a tenant or a thread. It is immutable.
type keys struct {
	handle   *keyset.Handle
	aead     tink.AEAD
	ids      []uint32
	revision uint64 // of the entry in the bucket
}

// newKeys generates a keyset with one key.
func newKeys() (*keys, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("encryption: generate a key: %w", err)
	}
	return keysOf(handle, 0)
}

// keysOf returns the keys of a keyset.
func keysOf(handle *keyset.Handle, revision uint64) (*keys, error) {
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	k := &keys{handle: handle, aead: primitive, revision: revision}
	for _, info := range handle.KeysetInfo().GetKeyInfo() {
		k.ids = append(k.ids, info.GetKeyId())
	}
	return k, nil
}

// has reports whether the keyset has the key of a ciphertext. Tink begins a ciphertext with one byte
// of its own, and the ID of the key in four bytes.
func (k *keys) has(ciphertext []byte) bool {
	return len(ciphertext) > 5 && slices.Contains(k.ids, binary.BigEndian.Uint32(ciphertext[1:5]))
}

// withNewPrimary returns the keyset with another primary key.
func (k *keys) withNewPrimary() (*keys, error) {
	m := keyset.NewManagerFromHandle(k.handle)
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err == nil {
		err = m.SetPrimary(id)
	}
	if err != nil {
		return nil, fmt.Errorf("encryption: rotate: %w", err)
	}
	return k.managed(m)
}

// without returns the keyset without some keys, none of them the primary.
func (k *keys) without(drop []uint32) (*keys, error) {
	m := keyset.NewManagerFromHandle(k.handle)
	for _, old := range drop {
		if err := m.Delete(old); err != nil {
			return nil, fmt.Errorf("encryption: rotate: %w", err)
		}
	}
	return k.managed(m)
}

func (k *keys) managed(m *keyset.Manager) (*keys, error) {
	handle, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("encryption: rotate: %w", err)
	}
	return keysOf(handle, k.revision)
}

// primary returns the ID of the key that encrypts.
func (k *keys) primary() uint32 { return k.handle.KeysetInfo().GetPrimaryKeyId() }

// encode encrypts the keyset itself, bound to its key in the bucket.
func (k *keys) encode(ctx context.Context, by tink.AEADWithContext, name string) ([]byte, error) {
	var out bytes.Buffer
	if err := k.handle.WriteWithContext(ctx, keyset.NewBinaryWriter(&out), by, []byte(name)); err != nil {
		return nil, fmt.Errorf("encryption: %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// decodeKeys is the inverse of encode.
func decodeKeys(ctx context.Context, stored []byte, by tink.AEADWithContext, name string, revision uint64) (*keys, error) {
	handle, err := keyset.ReadWithContext(ctx, keyset.NewBinaryReader(bytes.NewReader(stored)), by, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("encryption: %s: %w", name, err)
	}
	return keysOf(handle, revision)
}

// EncryptWithContext implements tink.AEADWithContext, so that keys encrypt other keysets.
func (k *keys) EncryptWithContext(_ context.Context, plain, associated []byte) ([]byte, error) {
	return k.aead.Encrypt(plain, associated)
}

// DecryptWithContext implements tink.AEADWithContext.
func (k *keys) DecryptWithContext(_ context.Context, ciphertext, associated []byte) ([]byte, error) {
	if !k.has(ciphertext) {
		return nil, errUnknownKey
	}
	return k.aead.Decrypt(ciphertext, associated)
}
