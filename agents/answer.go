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

// Repair returns the message that sends the answer back to its agent.
func (e *AnswerError) Repair() string {
	return "Your last answer is not valid: " + e.Error() + ". Answer again, with nothing but JSON that fits the schema."
}

// Detail returns the problems as the detail of a failure, of at most 500 bytes.
func (e *AnswerError) Detail() string {
	text := e.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxDetail)], "")
}

// Bounds of the problems in an AnswerError: their number, the bytes of each, and those of all in a
// failure.
const (
	maxProblems = 8
	maxProblem  = 200
	maxDetail   = 500
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

// Read extracts the JSON from an agent's answer, which may be in a fenced code block, and checks it
// (see Check).
func (o *Output) Read(answer string) (json.RawMessage, error) {
	value := json.RawMessage(withoutFence(answer))
	if err := o.Check(value); err != nil {
		return nil, err
	}
	return value, nil
}

// Check validates JSON by the schema. An *AnswerError means that an agent may repair its answer; any
// other error concerns the schema. Without a schema, any JSON is valid as the result of Value.
func (o *Output) Check(raw json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return &AnswerError{[]string{"the answer is not JSON, or has text around the JSON"}}
	}
	if len(o.Schema) == 0 && o.Value != "" {
		return nil
	}
	schema, err := o.compiled()
	if err != nil {
		return fmt.Errorf("output: schema: %w", err)
	}
	err = schema.Validate(value)
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(err, &invalid) {
		return &AnswerError{problems(invalid)}
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
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
