package agentroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
)

// agentList is the answer of GET /v1/agents.
type agentList struct {
	Items []Agent `json:"items"`
	// Problems are those of the directory of definitions of this process.
	Problems []string `json:"problems,omitempty"`
}

// listAgents serves GET /v1/agents: all agents that the caller may run by name, in one page.
func (r *Routes) listAgents(c *gin.Context) error {
	caller, err := request.Principal(c.Request.Context())
	if err != nil {
		return err
	}
	list, live := []Agent{}, r.liveNames(caller.Tenant)
	for _, p := range r.Catalog.List(caller.Tenant) {
		list = append(list, r.describeLive(p, live))
	}
	problems, err := r.directoryProblems(c.Request.Context())
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, agentList{list, problems})
}

// directoryProblems returns why definitions of the directory are not published, for callers who may
// publish agents of the platform; nil for others, whom the files do not concern.
func (r *Routes) directoryProblems(ctx context.Context) ([]string, error) {
	if r.Directory == nil {
		return nil, nil
	}
	if err := r.Access.CheckAgent(ctx, "", "", policy.PublishAgent); errors.As(err, new(*policy.DeniedError)) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	directory := r.Directory()
	var problems []string
	if directory.Problem != "" {
		problems = strings.Split(strings.TrimSpace(directory.Problem), "\n")
	}
	for _, d := range directory.Agents {
		all, err := r.Catalog.Publications("", d.Name)
		if err != nil { // it is not published yet
			continue
		}
		if last := all[len(all)-1]; last.Source == catalog.SourcePut && last.Revision != d.Revision() {
			problems = append(problems, fmt.Sprintf("the file of %s is not published, because another definition was published over HTTP: --agents-force publishes the file", d.Name))
		}
	}
	return problems, nil
}
