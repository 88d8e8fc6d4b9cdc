package agui

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// encode encodes an event.
func encode(t testing.TB, e Event) json.RawMessage {
	t.Helper()
	raw, err := Encode(e)
	if err != nil {
		t.Fatalf("Encode(%s): %v", e.EventType(), err)
	}
	return raw
}

// decode decodes an event.
func decode(t testing.TB, raw string) Event {
	t.Helper()
	e, err := Decode([]byte(raw))
	if err != nil {
		t.Fatalf("Decode(%s): %v", raw, err)
	}
	return e
}

// parse decodes JSON.
func parse(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// checkRoundTrip checks that encoding and decoding again gives an equal event.
func checkRoundTrip(t testing.TB, e Event) {
	t.Helper()
	raw := encode(t, e)
	if !bytes.HasPrefix(raw, []byte(`{"type":"`+string(e.EventType())+`"`)) && len(e.EventType()) == len(escaped(string(e.EventType()))) {
		t.Errorf("encoded event = %s, want the type first", raw)
	}
	again, err := Decode(raw)
	if err != nil {
		t.Fatalf("Decode of own %s: %v", raw, err)
	}
	if diff := cmp.Diff(e, again); diff != "" {
		t.Errorf("round trip of %s (-want +got):\n%s", raw, diff)
	}
	if twice := encode(t, again); !bytes.Equal(raw, twice) {
		t.Errorf("encoded, decoded and encoded again:\n%s\nwant\n%s", twice, raw)
	}
}

// escaped returns a text as in JSON, without quotes.
func escaped(s string) string {
	quoted := appendString(nil, s)
	return string(quoted[1 : len(quoted)-1])
}

const schemaURL = "https://ag-ui.com/spec/1.1/schema.json"

var compiler = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "shared", "agui", "schema-1.1.json"))
	if err != nil {
		return nil, nil //nolint:nilerr // without the specification next to the repository, events are not checked
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	return c, c.AddResource(schemaURL, doc)
})

var (
	schemaMu sync.Mutex
	schemas  = map[string]*jsonschema.Schema{}
)

// checkSchema validates raw against the specification's schema, or against the definition that
// anchor names.
func checkSchema(t testing.TB, anchor string, raw []byte) {
	t.Helper()
	schema := compileSchema(t, anchor)
	if schema == nil {
		return
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("not valid against the schema: %s\n%v", raw, err)
	}
}

// compileSchema compiles a part of the protocol's schema.
func compileSchema(t testing.TB, anchor string) *jsonschema.Schema {
	t.Helper()
	schemaMu.Lock()
	defer schemaMu.Unlock()
	c, err := compiler()
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		return nil
	}
	if schemas[anchor] == nil {
		url := schemaURL
		if anchor != "" {
			url += "#" + anchor
		}
		schema, err := c.Compile(url)
		if err != nil {
			t.Fatal(err)
		}
		schemas[anchor] = schema
	}
	return schemas[anchor]
}
