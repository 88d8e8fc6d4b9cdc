package api

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
)

// keysPath is the route of the public keys of assertions. It is public: the servers of tools, which
// read it, are no callers of the API.
const keysPath = "/.well-known/jwks.json"

// keySet is a JSON Web Key Set (RFC 7517, section 5).
type keySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// showKeys serves GET /.well-known/jwks.json. Caches may keep the answer for a part of the time for
// which workers only publish a new key (package assertion).
func (s *Server) showKeys(c *gin.Context) error {
	set := keySet{Keys: []json.RawMessage{}}
	if s.PublicKeys != nil {
		set.Keys = s.PublicKeys()
	}
	body, err := json.Marshal(set)
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "public, max-age=30")
	c.Data(http.StatusOK, "application/jwk-set+json", body)
	return nil
}
