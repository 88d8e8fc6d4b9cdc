package wire

// Dialect is the part of JSON Schema that a provider can hold a model to. It refuses requests with
// more.
type Dialect struct {
	// Keywords are those that it knows, beside type, properties, required, additionalProperties,
	// items and enum.
	Keywords []string
	// Formats are the formats of strings that it knows.
	Formats []string

	// Object wants the answer to be an object, which is not one of several.
	Object bool
	// Closed wants objects to say that they have no other properties than those named, Complete
	// that they have all of those.
	Closed, Complete bool
	// Flat wants no schema to be a part of itself.
	Flat bool
	// PlainEnum wants enumerations to be of texts and numbers.
	PlainEnum bool
	// MinItems is the most that minItems may be; 0 = any number.
	MinItems int

	// What a schema may have in all; 0 = any number. Depth is how deep things stand in one another,
	// Values how many there are in enumerations, Text how long names and values are in bytes,
	// Optional how many properties are not required, Unions how many alternatives of types there
	// are.
	Depth, Properties, Values, Text, Optional, Unions int
}

// soft are the keywords that describe, or narrow what others say. Without them a schema fits all
// that it fits with them, so they may be left out of what a model is held to: it is told them in
// words, and the answer is checked.
var soft = []string{
	"$schema", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"const", "format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}
