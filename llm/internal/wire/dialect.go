package wire

// Dialect describes the subset of JSON Schema that a provider supports for structured output. The
// API rejects a request whose schema exceeds it. [Dialect.Say] translates a schema into the subset.
//
// A Dialect is immutable after construction, so concurrent calls share it.
type Dialect struct {
	// Keywords are the supported keywords. These are always supported: type, properties, required,
	// additionalProperties, items and enum.
	Keywords []string
	// Formats are the supported values of the keyword format.
	Formats []string

	// Object requires the root schema to have the type object and no anyOf.
	Object bool
	// Closed requires every object to list its properties and to set additionalProperties to false.
	// Complete requires every property to be in required.
	Closed, Complete bool
	// Flat forbids recursive schemas.
	Flat bool
	// PlainEnum restricts enum to strings and numbers.
	PlainEnum bool
	// MinItems is the maximum value of minItems; 0 = unlimited.
	MinItems int

	// Limits for the whole schema; 0 = unlimited. Depth counts nested schemas, the root being 0.
	// Properties counts the properties of all objects, Values all enum values, and Text the bytes
	// of property names and string values. Optional counts properties that are not required, Unions
	// counts anyOf and lists of types.
	Depth, Properties, Values, Text, Optional, Unions int
}

// omittableKeywords are the keywords that only annotate a schema or narrow other keywords. Without
// one of them, a schema still accepts every value that it accepts with it. So they can be omitted
// where the API does not support them: the prompt contains the full schema, and the caller
// validates the answer.
var omittableKeywords = []string{
	"$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"const", "format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}
