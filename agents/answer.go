package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// answerURL is where a schema pretends to live. No loader knows its scheme, so nothing that a schema points
// to is ever read from disk or network.
const answerURL = "answer:///schema"

// AnswerError is an answer that is not what an agent has to say. Its words are for the agent: they may quote it.
type AnswerError struct{ Problems []string }

func (e *AnswerError) Error() string { return strings.Join(e.Problems, "; ") }

const (
	maxProblems = 8
	maxProblem  = 200 // bytes
)

func (o *Output) compile() error {
	_, err := o.compiled()
	return err
}

func (o *Output) compiled() (*jsonschema.Schema, error) {
	if o.wrong != nil {
		return nil, o.wrong
	}
	if len(o.Schema) == 0 {
		return nil, errors.New("it is missing")
	}
	if len(o.Schema) > maxAnswer {
		return nil, fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(o.Schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource(answerURL, document); err != nil {
		return nil, err
	}
	return compiler.Compile(answerURL)
}

// Read takes the JSON out of an agent's answer, which may stand in a fenced block, and checks it. The error is an
// *AnswerError if the agent may do better.
func (o *Output) Read(answer string) (json.RawMessage, error) {
	schema, err := o.compiled()
	if err != nil {
		return nil, fmt.Errorf("output: schema: %w", err)
	}
	raw := unfenced(answer)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil, &AnswerError{[]string{"it is not JSON, or not only that"}}
	}
	err = schema.Validate(value)
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(err, &invalid) {
		return nil, &AnswerError{problems(invalid)}
	}
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return json.RawMessage(raw), nil
}

// unfenced is what stands between the fences of the only block of code in a text, or all of it.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	_, after, found := strings.Cut(text, "```")
	if !found || json.Valid([]byte(text)) {
		return text
	}
	_, after, _ = strings.Cut(after, "\n") // the language
	block, rest, found := strings.Cut(after, "```")
	if !found || strings.Contains(rest, "```") {
		return text
	}
	return strings.TrimSpace(block)
}

// problems are the leaves of the validator's tree: inner nodes only say that something below them failed. It
// walks maps, whose order is nobody's, so they are sorted.
func problems(invalid *jsonschema.ValidationError) []string {
	var found []string
	var collect func(*jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			at := "/" + strings.Join(e.InstanceLocation, "/")
			found = append(found, fmt.Sprintf("at %.100s: %s", at, e.ErrorKind.LocalizedString(message.NewPrinter(language.English))))
		}
		for _, cause := range e.Causes {
			collect(cause)
		}
	}
	collect(invalid)
	slices.Sort(found)
	found = slices.Compact(found)
	found = found[:min(len(found), maxProblems)]
	for i, problem := range found {
		found[i] = strings.ToValidUTF8(problem[:min(len(problem), maxProblem)], "")
	}
	return found
}
