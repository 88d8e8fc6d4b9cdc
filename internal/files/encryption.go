package files

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/minio/sio"

	"github.com/perdure/perdure/stream"
)

// keyBytes is the size of the key of a blob.
const keyBytes = 32

// Sizes of a package of the format of sio (DARE 2.0): each is authenticated by itself, and bound to its
// place and to the end of the blob.
const (
	packageBytes          = 64 << 10
	encryptedPackageBytes = packageBytes + 32
)

// keyName returns the name under which the log keeps the key of a blob or of a resumable upload. No thread has
// it: the ID of a thread has no control characters.
func keyName(tenant, blob string) stream.Thread {
	return stream.Thread{Tenant: tenant, ID: "\x00blob/" + blob}
}

// newKey returns a random key for a blob, and the key as it is stored. Both are nil if the log does not
// encrypt.
func newKey(ctx context.Context, l *stream.Log, tenant, blob string) (key, stored []byte, err error) {
	if !l.Encrypts() {
		return nil, nil, nil
	}
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	stored, err = l.EncryptObject(ctx, keyName(tenant, blob), blobKey(tenant, blob), key)
	return key, stored, err
}

// openKey is the inverse of newKey.
func openKey(ctx context.Context, l *stream.Log, tenant, blob string, stored []byte) ([]byte, error) {
	if stored == nil {
		return nil, nil
	}
	return l.DecryptObject(ctx, keyName(tenant, blob), blobKey(tenant, blob), stored)
}

// suite returns the format for a key, for packages from a number on.
func suite(key []byte, first int64) sio.Config {
	return sio.Config{
		MinVersion: sio.Version20, MaxVersion: sio.Version20, CipherSuites: []byte{sio.AES_256_GCM},
		Key: key, SequenceNumber: uint32(first), //nolint:gosec // files are much smaller
	}
}

// encrypting returns the encrypted bytes of r; without a key r itself.
func encrypting(r io.Reader, key []byte) (io.Reader, error) {
	if key == nil {
		return r, nil
	}
	encrypted, err := sio.EncryptReader(r, suite(key, 0))
	if err != nil {
		return nil, fmt.Errorf("files: encrypt: %w", err)
	}
	return encrypted, nil
}

// openAt returns the bytes of a blob from an offset on, decrypted unless key is nil. The caller closes
// the result.
func openAt(ctx context.Context, s Storage, blob string, key []byte, offset int64) (io.ReadCloser, error) {
	if key == nil {
		return s.Open(ctx, blob, offset)
	}
	first := offset / packageBytes
	encrypted, err := s.Open(ctx, blob, first*encryptedPackageBytes)
	if err != nil {
		return nil, err
	}
	plain, err := sio.DecryptReader(encrypted, suite(key, first))
	if err == nil {
		_, err = io.CopyN(io.Discard, plain, offset%packageBytes)
	}
	if err != nil {
		_ = encrypted.Close()
		return nil, fmt.Errorf("files: decrypt: %w", err)
	}
	return decrypted{plain, encrypted}, nil
}

// decrypted reads a blob, and closes what it is read from.
type decrypted struct {
	io.Reader
	io.Closer
}
