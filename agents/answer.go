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

// answerURL is the base URL of a schema. No loader supports its scheme, so a $ref in a schema never
// reads from disk or network.
const answerURL = "answer:///schema"

// AnswerError reports an invalid answer of an agent. It is sent back to the agent, and may quote
// the answer.
type AnswerError struct{ Problems []string }

func (e *AnswerError) Error() string { return strings.Join(e.Problems, "; ") }

// Bounds of the problems in an AnswerError: their number, and the bytes of each.
const (
	maxProblems = 8
	maxProblem  = 200
)

// compile checks that the schema is valid.
func (o *Output) compile() error {
	_, err := o.compiled()
	return err
}

// compiled returns the compiled schema.
func (o *Output) compiled() (*jsonschema.Schema, error) {
	if o.schemaErr != nil {
		return nil, o.schemaErr
	}
	if len(o.Schema) == 0 {
		return nil, errors.New("the schema is missing")
	}
	if len(o.Schema) > maxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
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

// Read extracts the JSON from an agent's answer, which may be in a fenced code block, and validates
// it by the schema. An *AnswerError means that the agent may repair its answer; any other error
// concerns the schema.
func (o *Output) Read(answer string) (json.RawMessage, error) {
	schema, err := o.compiled()
	if err != nil {
		return nil, fmt.Errorf("output: schema: %w", err)
	}
	raw := withoutFence(answer)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil, &AnswerError{[]string{"the answer is not JSON, or has text around the JSON"}}
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

// withoutFence returns the content of the only fenced code block of a text. A text that is valid
// JSON, or has no or several such blocks, is returned as it is.
func withoutFence(text string) string {
	text = strings.TrimSpace(text)
	_, content, ok := strings.Cut(text, "```")
	if !ok || json.Valid([]byte(text)) {
		return text
	}
	_, content, _ = strings.Cut(content, "\n") // the language of the block
	block, rest, ok := strings.Cut(content, "```")
	if !ok || strings.Contains(rest, "```") {
		return text
	}
	return strings.TrimSpace(block)
}

// problems returns the leaves of the validator's error tree; inner nodes only say that a leaf
// failed. They are sorted, because the validator iterates over maps.
func problems(invalid *jsonschema.ValidationError) []string {
	var list []string
	var collect func(*jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			key := "/" + strings.Join(e.InstanceLocation, "/")
			list = append(list, fmt.Sprintf("at %.100s: %s", key, e.ErrorKind.LocalizedString(message.NewPrinter(language.English))))
		}
		for _, cause := range e.Causes {
			collect(cause)
		}
	}
	collect(invalid)
	slices.Sort(list)
	list = slices.Compact(list)
	list = list[:min(len(list), maxProblems)]
	for i, problem := range list {
		list[i] = strings.ToValidUTF8(problem[:min(len(problem), maxProblem)], "")
	}
	return list
}
