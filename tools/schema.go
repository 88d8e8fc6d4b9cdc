package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxSchema is the maximum size of a schema, in bytes.
const maxSchema = 256 << 10

// schemaURL is the base URL of every schema. No loader supports its scheme, so a reference in a
// schema never reads a file or the network.
const schemaURL = "parameters:///schema"

// Schema is a compiled JSON Schema of arguments. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
}

// CompileSchema compiles a JSON Schema of at most 256 KiB, by default of draft 2020-12. A reference
// to another document is an error: it is never loaded. As in the draft, format is an annotation and
// is not checked.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("schema is larger than %d bytes", maxSchema)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema is not valid JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{compiled: compiled}, nil
}

// Validate checks that arguments are a JSON object that matches the schema; empty arguments are {}.
// The error is an *ArgumentsError.
func (s *Schema) Validate(arguments json.RawMessage) error {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	object, err := decodeArguments(arguments)
	if err != nil {
		return err
	}
	return s.check(object)
}

// ValidateValue checks that any JSON value matches the schema. The error is an *ArgumentsError.
func (s *Schema) ValidateValue(raw json.RawMessage) error {
	value, err := decodeValue(raw)
	if err != nil {
		return err
	}
	return s.check(value)
}

// check validates a decoded value.
func (s *Schema) check(value any) error {
	err := s.compiled.Validate(value)
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(err, &invalid) {
		return s.explain(invalid)
	}
	if err != nil {
		return refused("", "%v", err)
	}
	return nil
}

// explain converts the validator's error to at most maxProblems problems. Their text and order are
// deterministic, since workflows record the result.
func (s *Schema) explain(invalid *jsonschema.ValidationError) *ArgumentsError {
	found := &ArgumentsError{}
	s.collect(invalid, found)
	// The validator has error kinds without a leaf that collect understands.
	if len(found.Problems) == 0 {
		return refused("", "the arguments do not fit the schema")
	}
	// The validator iterates over maps in random order; a repeated call must have the same text.
	slices.SortFunc(found.Problems, func(a, b Problem) int {
		return strings.Compare(a.Pointer+"\x00"+a.Reason, b.Pointer+"\x00"+b.Reason)
	})
	found.Problems = slices.Compact(found.Problems)
	found.Problems = found.Problems[:min(len(found.Problems), maxProblems)]
	return found
}

// collect returns the leaves of the validator's tree of errors: inner nodes only say that a node
// below them failed.
func (s *Schema) collect(invalid *jsonschema.ValidationError, found *ArgumentsError) {
	add := func(path []string, format string, args ...any) {
		found.Problems = append(found.Problems, Problem{pointer(path), fmt.Sprintf(format, args...)})
	}
	at := invalid.InstanceLocation
	switch k := invalid.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(append(slices.Clone(at), name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(append(slices.Clone(at), name), "unknown argument%s", s.knownArguments(at))
		}
	case *kind.Type:
		add(at, "expected %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.AnyOf, *kind.OneOf:
		add(at, "fits none, or too many, of the alternatives")
	case *kind.FalseSchema:
		add(at, "is not allowed")
	default:
		if len(invalid.Causes) == 0 {
			add(at, "%s", invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
		}
	}
	for _, cause := range invalid.Causes {
		s.collect(cause, found)
	}
}

// knownArguments lists the existing arguments, for a model that used another name.
func (s *Schema) knownArguments(at []string) string {
	if len(at) > 0 || len(s.compiled.Properties) == 0 {
		return ""
	}
	names := make([]string, 0, len(s.compiled.Properties))
	for name := range s.compiled.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return "; the arguments are " + strings.Join(names, ", ")
}
