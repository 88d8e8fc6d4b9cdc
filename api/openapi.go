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

// openAPIPath is public: programs that look an api over have no credentials yet, and it says no
// more than the documentation does.
const openAPIPath = "/openapi.json"

//go:embed openapi.yaml
var openAPISource []byte

// openAPI is the description of all routes, as JSON.
var openAPI = sync.OnceValues(func() ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPISource, &document); err != nil {
		return nil, fmt.Errorf("api: openapi.yaml: %w", err)
	}
	return json.Marshal(document)
})

func (s *Server) showOpenAPI(c *gin.Context) {
	document, err := openAPI()
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Data(http.StatusOK, gin.MIMEJSON, document)
}
