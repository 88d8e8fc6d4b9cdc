package agentroutes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/auth/policy"
)

// Directory is the directory of definitions of this process. Agents are those of the last read without
// an error. Problem tells why a later read has failed; "" = none has.
type Directory struct {
	Agents  []*agents.Definition
	Problem string
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
