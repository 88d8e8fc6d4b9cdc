package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// anyType maps json.RawMessage to any JSON value; by its Go type it would be a list of bytes.
var anyType = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}}

// outputOf returns the Output with the schema of a Go type. A type without a schema gives an Output
// that fails validation.
func outputOf(t reflect.Type) *Output {
	o := &Output{}
	schema, err := jsonschema.ForType(t, anyType)
	if err != nil {
		o.schemaErr = fmt.Errorf("of the type %s: %w", t, err)
		return o
	}
	withoutNull(schema)
	o.setSchema(schema)
	return o
}

// setSchema stores a schema.
func (o *Output) setSchema(schema *jsonschema.Schema) { o.Schema, o.schemaErr = json.Marshal(schema) }

// refine changes the schema. It does nothing if there already is an error.
func (o *Output) refine(change func(*jsonschema.Schema)) {
	if o.schemaErr != nil {
		return
	}
	schema := &jsonschema.Schema{}
	if len(o.Schema) > 0 {
		if o.schemaErr = json.Unmarshal(o.Schema, schema); o.schemaErr != nil {
			return
		}
	}
	change(schema)
	o.setSchema(schema)
}

// withoutNull removes null from the types of lists: it is there only because Go encodes a nil slice
// as null.
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
