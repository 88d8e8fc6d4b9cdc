package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"go.yaml.in/yaml/v3"
)

// openAPIPath is the route of the OpenAPI document. It is public: tools that discover an API have
// no credentials yet, and the document contains no more than the documentation.
const openAPIPath = "/openapi.json"

// openAPISource is the description of all routes. Tests compare it with Server.routes, and
// checkQuery enforces its query parameters.
//
//go:embed openapi.yaml
var openAPISource []byte

// openAPI is the document as JSON, converted once at the first request.
var openAPI = sync.OnceValues(func() ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPISource, &document); err != nil {
		return nil, fmt.Errorf("api: openapi.yaml: %w", err)
	}
	return json.Marshal(document)
})

// showOpenAPI serves GET /openapi.json.
func (s *Server) showOpenAPI(c *gin.Context) error {
	document, err := openAPI()
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, gin.MIMEJSON, document)
	return nil
}
