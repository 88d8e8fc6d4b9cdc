package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// anyType makes json.RawMessage any JSON, not a list of bytes.
var anyType = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}}

// outputOf returns the Output of a Go type.
func outputOf(t reflect.Type) *Output {
	o := &Output{}
	schema, err := jsonschema.ForType(t, anyType)
	if err != nil {
		o.wrong = fmt.Errorf("of the type %s: %w", t, err)
		return o
	}
	withoutNull(schema)
	o.take(schema)
	return o
}

func (o *Output) take(schema *jsonschema.Schema) { o.Schema, o.wrong = json.Marshal(schema) }

// refine changes the schema.
func (o *Output) refine(change func(*jsonschema.Schema)) {
	if o.wrong != nil {
		return
	}
	schema := &jsonschema.Schema{}
	if len(o.Schema) > 0 {
		if o.wrong = json.Unmarshal(o.Schema, schema); o.wrong != nil {
			return
		}
	}
	change(schema)
	o.take(schema)
}

// withoutNull removes null from the types of lists: only Go encodes an empty list so.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Type, s.Types = "array", nil
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
	for _, property := range s.Properties {
		withoutNull(property)
	}
}
