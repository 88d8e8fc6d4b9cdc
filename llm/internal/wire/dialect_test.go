package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// closed supports few keywords and has strict requirements. open supports more keywords and has no
// requirements.
var (
	closed = Dialect{
		Keywords: []string{"$ref", "anyOf", "const", "description", "minItems"}, Formats: []string{"date"},
		Object: true, Closed: true, Complete: true, Flat: true, PlainEnum: true, MinItems: 1,
		Depth: 4, Properties: 6, Values: 3, Text: 60, Unions: 2,
	}
	open = Dialect{Keywords: []string{"anyOf", "oneOf", "minimum"}, Optional: 1}
)

// object returns the schema of an object.
func object(properties string, required ...string) string {
	names, _ := json.Marshal(append([]string{}, required...))
	return fmt.Sprintf(`{"additionalProperties":false,"properties":{%s},"required":%s,"type":"object"}`, properties, names)
}

func TestDialect(t *testing.T) {
	t.Parallel()
	nothing := ""
	for name, test := range map[string]struct {
		dialect      *Dialect
		schema, want string
	}{
		"unchanged, in its order":            {&closed, `{"type":"object", "required":["a"], "properties":{"a":{"type":["string","null"],"description":"<"}},"additionalProperties":false}`, `{"type":"object", "required":["a"], "properties":{"a":{"type":["string","null"],"description":"<"}},"additionalProperties":false}`},
		"without narrowing keywords":         {&closed, object(`"a":{"description":"<1>","maximum":12345678901234567890,"type":"integer"}`, "a"), object(`"a":{"description":"<1>","type":"integer"}`, "a")},
		"a supported format":                 {&closed, object(`"a":{"format":"date","type":"string"}`, "a"), object(`"a":{"format":"date","type":"string"}`, "a")},
		"an unsupported format":              {&closed, object(`"a":{"format":"regex","type":"string"}`, "a"), object(`"a":{"type":"string"}`, "a")},
		"few items":                          {&closed, object(`"a":{"items":{"type":"string"},"minItems":1,"type":"array"}`, "a"), object(`"a":{"items":{"type":"string"},"minItems":1,"type":"array"}`, "a")},
		"many items":                         {&closed, object(`"a":{"items":{"type":"string"},"minItems":2,"type":"array"}`, "a"), object(`"a":{"items":{"type":"string"},"type":"array"}`, "a")},
		"a constant object":                  {&closed, object(`"a":{"const":{"x":1},"type":"object","properties":{},"additionalProperties":false}`, "a"), object(`"a":{"additionalProperties":false,"properties":{},"type":"object"}`, "a")},
		"no object":                          {&closed, `{"type":"array","items":{"type":"string"}}`, nothing},
		"one of several":                     {&closed, `{"type":"object","properties":{},"additionalProperties":false,"anyOf":[{"type":"object","properties":{},"additionalProperties":false}]}`, nothing},
		"open":                               {&closed, `{"type":"object","properties":{}}`, nothing},
		"open within":                        {&closed, object(`"a":{"type":["object","null"],"properties":{}}`, "a"), nothing},
		"open in a list of cases":            {&closed, object(`"a":{"anyOf":[{"type":"object","properties":{}}]}`, "a"), nothing},
		"not all required":                   {&closed, object(`"a":{"type":"string"}`), nothing},
		"required and not defined":           {&closed, object(`"a":{"type":"string"}`, "a", "b"), nothing},
		"any value":                          {&closed, object(`"a":{}`, "a"), nothing},
		"true":                               {&closed, object(`"a":true`, "a"), nothing},
		"an unsupported restricting keyword": {&closed, object(`"a":{"type":"string","not":{"const":"x"}}`, "a"), nothing},
		"unsupported alternatives":           {&closed, object(`"a":{"oneOf":[{"type":"string"}]}`, "a"), nothing},
		"an enumeration of objects":          {&closed, object(`"a":{"type":"object","enum":[{}],"properties":{},"additionalProperties":false}`, "a"), nothing},
		"an enumeration with null":           {&closed, object(`"a":{"type":"string","enum":["x",null]}`, "a"), nothing},
		"not JSON":                           {&closed, `{"type":`, nothing},
		"no schema of objects":               {&open, `true`, nothing},
		"too deep":                           {&closed, object(`"a":`+object(`"a":`+object(`"a":`+object(`"a":`+object(`"a":{"type":"string"}`, "a"), "a"), "a"), "a"), "a"), nothing},
		"too many properties":                {&closed, object(`"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"},"g":{"type":"string"}`, "a", "b", "c", "d", "e", "f", "g"), nothing},
		"too many values":                    {&closed, object(`"a":{"type":"integer","enum":[1,2,3,4]}`, "a"), nothing},
		"too long names":                     {&closed, object(`"`+strings.Repeat("a", 61)+`":{"type":"string"}`, strings.Repeat("a", 61)), nothing},
		"too long values":                    {&closed, object(`"a":{"type":"string","const":"`+strings.Repeat("a", 61)+`"}`, "a"), nothing},
		"too many alternatives":              {&closed, object(`"a":{"type":["string","null"]},"b":{"type":["string","null"]},"c":{"anyOf":[{"type":"string"}]}`, "a", "b", "c"), nothing},
		"too many optional properties":       {&open, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, nothing},
		"open, in a dialect that allows it":  {&open, `{"type":"array","minItems":1,"items":{"type":"object","additionalProperties":{"type":"integer","minimum":1.0}}}`, `{"items":{"additionalProperties":{"minimum":1.0,"type":"integer"},"type":"object"},"type":"array"}`},
		"a definition": {&closed, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"…"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`,
			`{"$defs":{"x":{"type":"string"}},"additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"type":"object"}`},
		"a reference with further keywords": {&closed, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","enum":["x"]}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`, nothing},
		"a reference to anywhere":           {&closed, object(`"a":{"$ref":"#/properties/b"},"b":{"type":"string"}`, "a", "b"), nothing},
		"an unknown reference":              {&open, `{"type":"array","items":{"$ref":"#"}}`, nothing},
		"a part of itself":                  {&closed, object(`"a":{"$ref":"#"}`, "a"), nothing},
		"definitions in a circle":           {&closed, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/y"}},"y":{"anyOf":[{"$ref":"#/$defs/x"}]}}}`, nothing},
		"definitions within":                {&closed, object(`"a":{"$defs":{"x":{"type":"string"}},"type":"string"}`, "a"), nothing},
		"a definition that is used twice":   {&closed, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"required":["a","b"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"required":["a","b"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`},
		"a circle, where that may be":       {&Dialect{Keywords: []string{"$ref"}}, `{"type":"array","items":{"$ref":"#"}}`, `{"type":"array","items":{"$ref":"#"}}`},
		"many ways to one definition":       {&Dialect{Keywords: []string{"$ref"}, Flat: true}, manyWays(200), manyWays(200)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(test.dialect.Translate(json.RawMessage(test.schema))); got != test.want {
				t.Errorf("%s\ntranslates to %s\nwant %s", test.schema, got, test.want)
			}
		})
	}
}

// manyWays returns a schema of n definitions, each of which refers to the next one twice.
func manyWays(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"type":"array","items":{"$ref":"#/$defs/d0"},"$defs":{%s"d%d":{"type":"string"}}}`, b.String(), n)
}

// FuzzDialect: the translation of a schema into a dialect is a schema, and accepts every value that
// the original accepts.
func FuzzDialect(f *testing.F) {
	f.Add(object(`"a":{"type":["string","null"],"maxLength":3}`, "a"), `{"a":null}`)
	f.Add(`{"type":"array","items":{"oneOf":[{"type":"integer","minimum":2},{"type":"string"}]},"maxItems":2}`, `[2,"x"]`)
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`, `{"a":""}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		given, err := compile(schema)
		if err != nil {
			return
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
		if err != nil {
			return
		}
		for _, dialect := range []*Dialect{&closed, &open} {
			text := dialect.Translate(json.RawMessage(schema))
			if text == nil {
				continue
			}
			translated, err := compile(string(text))
			if err != nil {
				t.Fatalf("%s translates to %s: %v", schema, text, err)
			}
			if given.Validate(instance) == nil && translated.Validate(instance) != nil {
				t.Errorf("%s fits %s, want it to fit the translated %s", value, schema, text)
			}
		}
	})
}

// compile compiles a schema.
func compile(schema string) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource("test:///schema", document); err != nil {
		return nil, err
	}
	return compiler.Compile("test:///schema")
}
