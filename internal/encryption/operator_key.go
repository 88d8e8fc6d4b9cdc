package encryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/perdure/perdure/stream"
)

// OperatorKey is a key of the operator, which encrypts the keys of tenants. Package operator opens
// it.
type OperatorKey struct {
	// ID tells the operator's keys apart. It is stored with what the key has encrypted, and does not
	// disclose the key.
	ID string
	// Keeper encrypts and decrypts. It is safe for concurrent use.
	Keeper interface {
		Encrypt(ctx context.Context, plain []byte) ([]byte, error)
		Decrypt(ctx context.Context, ciphertext []byte) ([]byte, error)
	}
}

// bound implements tink.AEADWithContext with an operator's key. Key services take no associated data,
// so the plaintext begins with its digest.
type bound struct{ OperatorKey }

// EncryptWithContext implements tink.AEADWithContext.
func (b bound) EncryptWithContext(ctx context.Context, plain, associated []byte) ([]byte, error) {
	digest := sha256.Sum256(associated)
	ciphertext, err := b.Keeper.Encrypt(ctx, append(digest[:], plain...))
	if err != nil {
		return nil, fmt.Errorf("%w: the operator's key %s: %w", stream.ErrUnavailable, b.ID, err)
	}
	return ciphertext, nil
}

// DecryptWithContext implements tink.AEADWithContext.
func (b bound) DecryptWithContext(ctx context.Context, ciphertext, associated []byte) ([]byte, error) {
	plain, err := b.Keeper.Decrypt(ctx, ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: the operator's key %s: %w", stream.ErrUnavailable, b.ID, err)
	}
	digest := sha256.Sum256(associated)
	plain, isBound := bytes.CutPrefix(plain, digest[:])
	if !isBound {
		return nil, errors.New("the key of another tenant")
	}
	return plain, nil
}

// check encrypts and decrypts a text, so that a key that cannot be used is reported at the start.
func (b bound) check(ctx context.Context) error {
	ciphertext, err := b.EncryptWithContext(ctx, []byte("check"), nil)
	if err == nil {
		_, err = b.DecryptWithContext(ctx, ciphertext, nil)
	}
	return err
}
