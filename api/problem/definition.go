package problem

import (
	"errors"
	"strings"

	"github.com/perdure/perdure/agents"
)

// definitionProblem returns the 400 invalid_agent for the errors of agents.Parse, with all mistakes
// and their places; nil = err is another error. The problem itself has the first mistake.
func definitionProblem(err error) *Problem {
	var mistakes []Mistake
	for _, definitionErr := range definitionErrors(err) {
		mistakes = append(mistakes, Mistake{Pointer: Pointer(definitionErr.Key), Line: definitionErr.Line, Column: definitionErr.Column, Detail: definitionErr.Reason})
	}
	if len(mistakes) == 0 {
		return nil
	}
	p := BadRequest("invalid_agent", mistakes[0].Pointer, mistakes[0].Detail)
	p.Errors = mistakes
	return p
}

// definitionErrors returns every agents.DefinitionError among the errors that agents.Parse has
// joined, in their order.
func definitionErrors(err error) []*agents.DefinitionError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // what is joined is looked at definitionErr by definitionErr
		var list []*agents.DefinitionError
		for _, err := range joined.Unwrap() {
			list = append(list, definitionErrors(err)...)
		}
		return list
	}
	var definitionErr *agents.DefinitionError
	if errors.As(err, &definitionErr) {
		return []*agents.DefinitionError{definitionErr}
	}
	return nil
}

// Pointer converts a key of a definition, such as state.predict[0].tool, to a JSON pointer,
// /state/predict/0/tool. It cuts a key of more than maxPointerBytes.
func Pointer(key string) string {
	if key == "" {
		return ""
	}
	key = strings.ToValidUTF8(key[:min(len(key), maxPointerBytes)], "")
	return "/" + strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "").Replace(key)
}

// maxPointerBytes bounds the key in a pointer: a hostile definition may have a key of a megabyte.
const maxPointerBytes = 100
