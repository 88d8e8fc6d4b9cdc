package assertion

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// maxKeys bounds the keys of a worker. A rotation needs two.
const maxKeys = 8

// PublicKey is a public key on the curve P-256, as a JSON Web Key (RFC 7517). It has no member for a
// private key.
type PublicKey struct {
	Type      string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// key is a private key with its public part, whose ID is its thumbprint (RFC 7638).
type key struct {
	private *ecdsa.PrivateKey
	public  PublicKey
}

// newKey returns the key of a private key.
func newKey(private *ecdsa.PrivateKey) (key, error) {
	if private.Curve != elliptic.P256() {
		return key{}, errors.New("a key is not on the curve P-256")
	}
	thumbprint, err := (&jose.JSONWebKey{Key: &private.PublicKey}).Thumbprint(crypto.SHA256)
	if err != nil {
		return key{}, fmt.Errorf("assertion: %w", err)
	}
	point, err := private.PublicKey.Bytes() // 4, X and Y (SEC 1, section 2.3.3)
	if err != nil {
		return key{}, fmt.Errorf("assertion: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	x, y := point[1:1+len(point)/2], point[1+len(point)/2:]
	return key{private: private, public: PublicKey{
		Type: "EC", Use: "sig", Algorithm: string(jose.ES256), ID: encode(thumbprint), Curve: "P-256", X: encode(x), Y: encode(y),
	}}, nil
}

// CheckKeys reports what is wrong with the text of private keys. The error contains nothing of the
// text.
func CheckKeys(text string) error {
	_, err := parseKeys(text)
	return err
}

// parseKeys parses private keys in PEM, one after the other, the newest one last. Other blocks, such
// as parameters of the curve, are ignored.
func parseKeys(text string) ([]key, error) {
	var keys []key
	seen := map[string]bool{}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if len(bytes.TrimSpace(rest)) > 0 {
				return nil, errors.New("there is text that is not PEM")
			}
			break
		}
		private, err := parseBlock(block)
		if err != nil {
			return nil, err
		}
		if private == nil {
			continue
		}
		k, err := newKey(private)
		if err != nil {
			return nil, err
		}
		if seen[k.public.ID] {
			return nil, errors.New("a key occurs twice")
		}
		seen[k.public.ID] = true
		keys = append(keys, k)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("there is no private key in PEM")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("there are more than %d keys", maxKeys)
	}
	return keys, nil
}

// parseBlock returns the private key of a PEM block; nil = the block has none.
func parseBlock(block *pem.Block) (*ecdsa.PrivateKey, error) {
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("a PRIVATE KEY is not valid PKCS #8")
		}
		private, ok := parsed.(*ecdsa.PrivateKey)
		if !ok {
			return nil, errors.New("a key is not on the curve P-256")
		}
		return private, nil
	case "EC PRIVATE KEY":
		private, err := x509.ParseECPrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("an EC PRIVATE KEY is not valid SEC 1")
		}
		return private, nil
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("a key is encrypted with a password, which is not supported")
	}
	return nil, nil
}

// GenerateKey returns a new private key in PEM.
func GenerateKey() ([]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("assertion: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("assertion: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
