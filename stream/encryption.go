package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/durations"
)

// This file encrypts what the log stores about a thread: the payloads of records, blobs,
// checkpoints, and the content of entries in buckets. Each thread has a key of its own, which Purge
// destroys. A log without a Cipher stores everything as it is, and reads what is not encrypted.
//
// Every ciphertext is bound to its place: the subject and the header of its record, the name of its
// blob, or the key of its entry. At another place it cannot be decrypted.

// errNoCipher tells that a value is encrypted, and that this process has no key. Another process
// encrypts: the operator has not configured all of them.
var errNoCipher = fmt.Errorf("%w: it is encrypted, and this process has no encryption key", ErrUnavailable)

// keyName returns the name of a thread in the bucket of keys, by its subject: the tokens of tenant
// and thread.
func (l *Log) keyName(threadSubject string) string {
	return IndexToken(strings.TrimPrefix(threadSubject, l.prefix+"."))
}

// beginKey creates the key of a thread without records. It retries during outages until ctx ends.
func (l *Log) beginKey(ctx context.Context, t Thread) error {
	if l.cipher == nil {
		return nil
	}
	return retryUnavailable(ctx, func() error { return l.cipher.Begin(ctx, l.keyName(l.ThreadSubject(t))) })
}

// encrypt encrypts a value for its place. It retries during outages until ctx ends.
func (l *Log) encrypt(ctx context.Context, threadSubject string, plain []byte, place string) (ciphertext []byte, err error) {
	err = retryUnavailable(ctx, func() error {
		ciphertext, err = l.cipher.Encrypt(ctx, l.keyName(threadSubject), plain, []byte(place))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stream: encrypt: %w", err)
	}
	return ciphertext, nil
}

// decrypt decrypts a value of a thread, by the thread's name in the bucket of keys.
func (l *Log) decrypt(ctx context.Context, keyName string, ciphertext []byte, place string) ([]byte, error) {
	if l.cipher == nil {
		return nil, errNoCipher
	}
	return l.cipher.Decrypt(ctx, keyName, ciphertext, []byte(place))
}

// retryUnavailable repeats try while it fails with ErrUnavailable, until ctx ends.
func retryUnavailable(ctx context.Context, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try()
		if !errors.Is(err, ErrUnavailable) || isPermanent(err) {
			return err
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// ciphertextPrefix begins encrypted values of the object store. JSON and text do not begin with it.
var ciphertextPrefix = []byte("\x00perdure.encrypted\x00")

// EncryptObject encrypts an object of a thread for the object store, by its name. Without a Cipher
// it returns the object itself.
func (l *Log) EncryptObject(ctx context.Context, t Thread, name string, plain []byte) ([]byte, error) {
	return l.encryptObject(ctx, l.ThreadSubject(t), name, plain)
}

func (l *Log) encryptObject(ctx context.Context, threadSubject, name string, plain []byte) ([]byte, error) {
	if l.cipher == nil {
		return plain, nil
	}
	ciphertext, err := l.encrypt(ctx, threadSubject, plain, name)
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(ciphertextPrefix), ciphertext...), nil
}

// DecryptObject is the inverse of EncryptObject. It returns an object that is not encrypted as it
// is. Errors: see Cipher.
func (l *Log) DecryptObject(ctx context.Context, t Thread, name string, stored []byte) ([]byte, error) {
	return l.decryptObject(ctx, l.ThreadSubject(t), name, stored)
}

func (l *Log) decryptObject(ctx context.Context, threadSubject, name string, stored []byte) ([]byte, error) {
	ciphertext, isEncrypted := bytes.CutPrefix(stored, ciphertextPrefix)
	if !isEncrypted {
		return stored, nil
	}
	return l.decrypt(ctx, l.keyName(threadSubject), ciphertext, name)
}

// encryptedEntry is an encrypted entry of a bucket.
type encryptedEntry struct {
	Encrypted []byte `json:"encrypted"`
	Thread    string `json:"of"` // name in the bucket of keys
}

var encryptedEntryPrefix = []byte(`{"encrypted":`)

// EncryptEntry encrypts the JSON value of a key of a bucket, with the key of a thread. Without a
// Cipher it returns the value itself.
func (l *Log) EncryptEntry(ctx context.Context, t Thread, key string, value []byte) ([]byte, error) {
	if l.cipher == nil {
		return value, nil
	}
	return l.encryptEntry(ctx, l.ThreadSubject(t), key, value)
}

func (l *Log) encryptEntry(ctx context.Context, threadSubject, key string, value []byte) ([]byte, error) {
	ciphertext, err := l.encrypt(ctx, threadSubject, value, key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(encryptedEntry{Encrypted: ciphertext, Thread: l.keyName(threadSubject)})
}

// DecryptEntry is the inverse of EncryptEntry. It returns a value that is not encrypted as it is. It
// retries during outages until ctx ends. Errors: ErrGone if the thread was deleted.
func (l *Log) DecryptEntry(ctx context.Context, key string, value []byte) (plain []byte, err error) {
	if !bytes.HasPrefix(value, encryptedEntryPrefix) {
		return value, nil
	}
	var entry encryptedEntry
	if err := json.Unmarshal(value, &entry); err != nil {
		return nil, fmt.Errorf("stream: entry %s: %w", key, err)
	}
	err = retryUnavailable(ctx, func() error {
		plain, err = l.decrypt(ctx, entry.Thread, entry.Encrypted, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stream: decrypt entry %s: %w", key, err)
	}
	return plain, nil
}

// Encrypts reports whether the log has a Cipher.
func (l *Log) Encrypts() bool { return l.cipher != nil }

// DestroyKey makes everything that was encrypted for a thread unreadable, or for another name that
// EncryptObject and EncryptEntry were called with. It succeeds if there is no key.
func (l *Log) DestroyKey(ctx context.Context, t Thread) error {
	if l.cipher == nil {
		return nil
	}
	return l.cipher.Destroy(ctx, l.keyName(l.ThreadSubject(t)))
}
