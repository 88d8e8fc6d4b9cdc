package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/workers/assertion"
)

// keyFile returns the path of the key that signs assertions.
func (p *devProcess) keyFile() string { return filepath.Join(p.options.data, "assertion_key.pem") }

// openSigner opens the signer of assertions, with the keys of the configuration, or else with that of
// the data directory. A new key is stored later: only startServers knows whether the directory can be
// used.
func (p *devProcess) openSigner(context.Context) (err error) {
	read := p.config.AssertionKeys
	if read() == "" {
		stored, err := os.ReadFile(p.keyFile())
		if errors.Is(err, fs.ErrNotExist) {
			stored, err = assertion.GenerateKey()
			p.newKey = stored
		}
		if err != nil {
			return fmt.Errorf("the key of assertions: %w", err)
		}
		read = func() string { return string(stored) }
	}
	issuer := cmp.Or(p.config.PublicURL, "http://"+p.listener.Addr().String())
	p.signer, err = assertion.Open(issuer, read, p.logger)
	return err
}

// storeKey writes a new key into the data directory. Only its owner may read it.
func (p *devProcess) storeKey(context.Context) error {
	if p.newKey == nil {
		return nil
	}
	if err := os.WriteFile(p.keyFile(), p.newKey, 0o600); err != nil {
		return fmt.Errorf("the key of assertions: %w", err)
	}
	return nil
}
