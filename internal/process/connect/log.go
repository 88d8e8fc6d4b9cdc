package connect

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/encryption/operator"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/stream"
)

// OpenLog opens the log with the encryption of the configuration. Errors: *config.VariableError if the
// log is encrypted with keys that are not configured, or if a configured key cannot be used.
func OpenLog(ctx context.Context, cfg *config.Config, nc *nats.Conn) (*stream.Log, error) {
	urls := cfg.EncryptionKeys()
	if urls == "" {
		log, err := stream.Open(ctx, nc, cfg.Stream)
		if err != nil {
			return nil, err
		}
		return log, ofEncryptionKeys(encryption.CheckPlain(ctx, log))
	}
	keys, err := operator.Open(ctx, urls, cfg.Getenv)
	if err != nil {
		return nil, &config.VariableError{Name: config.EncryptionKeysName, Err: err}
	}
	options := cfg.Stream
	options.Cipher = encryption.Cipher(keys)
	log, err := stream.Open(ctx, nc, options)
	return log, ofEncryptionKeys(err)
}

// OpenKeys opens the log and its keys, for a rotation. The log does not decrypt.
func OpenKeys(ctx context.Context, cfg *config.Config, nc *nats.Conn) (*stream.Log, *encryption.Keys, error) {
	operators, err := operator.Open(ctx, cfg.EncryptionKeys(), cfg.Getenv)
	if err != nil {
		return nil, nil, &config.VariableError{Name: config.EncryptionKeysName, Err: err}
	}
	log, err := stream.Open(ctx, nc, cfg.Stream)
	if err != nil {
		return nil, nil, err
	}
	keys, err := encryption.Open(ctx, log, operators)
	return log, keys, ofEncryptionKeys(err)
}

// ofEncryptionKeys adds the name of the variable to an error that another value of it resolves.
func ofEncryptionKeys(err error) error {
	if errors.Is(err, encryption.ErrNoOperatorKey) || errors.Is(err, encryption.ErrUnknownOperatorKey) || errors.Is(err, encryption.ErrUnusableOperatorKey) {
		return &config.VariableError{Name: config.EncryptionKeysName, Err: err}
	}
	return err
}
