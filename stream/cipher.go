package stream

import (
	"context"
	"fmt"
)

// Cipher encrypts the content of threads with a key for each thread. thread is a thread's name in
// the bucket of keys (see Log.keyName). It is safe for concurrent use.
//
// Errors: ErrKeyDestroyed if the thread has no key, ErrGone if the ciphertext is of an earlier key of
// the same name, ErrUnavailable if the keys cannot be read. Any other error tells that the
// ciphertext, or the place that it is bound to, was changed.
type Cipher interface {
	// Begin creates the key of a thread that has no records, unless it exists. Encrypt and Decrypt
	// use no earlier key of the same name from then on.
	Begin(ctx context.Context, thread string) error
	// Encrypt creates the key of the thread if it is missing. It does not keep plain or place.
	Encrypt(ctx context.Context, thread string, plain, place []byte) ([]byte, error)
	// Decrypt succeeds only with the place that Encrypt was called with.
	Decrypt(ctx context.Context, thread string, ciphertext, place []byte) ([]byte, error)
	// Destroy makes everything that was encrypted for the thread unreadable, in all processes. It
	// succeeds if there is no key.
	Destroy(ctx context.Context, thread string) error
}

// ErrKeyDestroyed is the ErrUnfinishedPurge of a thread whose records exist, and whose key was
// destroyed.
var ErrKeyDestroyed = fmt.Errorf("%w: its key was destroyed", ErrUnfinishedPurge)
