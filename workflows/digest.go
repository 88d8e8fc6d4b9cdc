package workflows

import (
	"crypto/sha256"
	"encoding/hex"
)

// digest returns the first n bytes of the SHA-256 of a text, in hexadecimal. IDs of workflows have
// it instead of IDs of runs and messages, which may be long.
func digest(n int, text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:n])
}
