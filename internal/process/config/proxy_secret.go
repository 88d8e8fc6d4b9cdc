package config

import (
	"fmt"
	"strings"
)

// Bounds of the secrets of a proxy: their number, of which the second one is for a rotation, and the
// length of each in bytes.
const (
	maxProxySecrets     = 2
	minProxySecretBytes = 32
)

// proxySecretVariable has the secrets of a proxy.
const proxySecretVariable = "PERDURE_AUTH_PROXY_SECRET"

// proxySecrets parses the secrets of a proxy, which white space separates. Its error contains no
// secret.
func proxySecrets(s string) ([]string, error) {
	secrets := strings.Fields(s)
	if len(secrets) == 0 || len(secrets) > maxProxySecrets {
		return nil, fmt.Errorf("must have one secret, or two during a rotation, and not %d", len(secrets))
	}
	for _, secret := range secrets {
		if len(secret) < minProxySecretBytes {
			return nil, fmt.Errorf("must have at least %d bytes", minProxySecretBytes)
		}
	}
	return secrets, nil
}

// proxySecretsOf returns the reader of the secrets of a proxy; nil = the environment has none.
func proxySecretsOf(env environment) func() ([]string, error) {
	if env.get(proxySecretVariable) == "" {
		return nil
	}
	return func() ([]string, error) {
		text, err := env.find(proxySecretVariable)
		if err != nil {
			return nil, err
		}
		secrets, err := proxySecrets(text)
		if err != nil {
			return nil, &VariableError{Name: proxySecretVariable, Err: err}
		}
		return secrets, nil
	}
}
