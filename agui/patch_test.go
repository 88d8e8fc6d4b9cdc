package agui

import (
	"encoding/json"
	"testing"
)

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	const fails = ""
	tests := []struct{ doc, patch, want string }{
		{`{"b":1,"a":2}`, `[]`, `{"b":1,"a":2}`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"foo":"bar","baz":"qux"}`},
		{`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc",null]}]`, `{"foo":["bar",["abc",null]]}`},
		{`{"foo":[1,2,3]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":[1,3]}`},
		{`{"a":{"b":1},"c":{}}`, `[{"op":"move","from":"/a/b","path":"/c/d"}]`, `{"a":{},"c":{"d":1}}`},
		{`{"a":[1,2,3,4]}`, `[{"op":"move","from":"/a/1","path":"/a/3"}]`, `{"a":[1,3,4,2]}`},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`, `{"a":{"b":1},"c":{"b":2}}`},
		{`{"a":1,"b":null}`, `[{"op":"test","path":"/b","value":null},{"op":"replace","path":"/b","value":null}]`, `{"a":1,"b":null}`},
		{`{"a/b":1,"m~n":2}`, `[{"op":"replace","path":"/a~1b","value":3},{"op":"remove","path":"/m~0n"}]`, `{"a/b":3}`},
		{`{"n":12345678901234567890,"m":1.50}`, `[{"op":"add","path":"/x","value":1E5}]`, `{"n":12345678901234567890,"m":1.50,"x":1E5}`},
		{`{"h":"<&>"}`, `[{"op":"add","path":"/i","value":"<"}]`, `{"h":"<&>","i":"<"}`},
		// The document itself may have any type.
		{`{"a":1}`, `[{"op":"replace","path":"","value":0}]`, `0`},
		{`null`, `[{"op":"add","path":"","value":{"a":1}},{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
		{`"s"`, `[{"op":"test","path":"","value":"s"}]`, `"s"`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":""}]`, `{"b":1}`},
		{`[1]`, `[{"op":"remove","path":""}]`, `null`},
		// A patch applies as a whole or not at all.
		{`{"a":1}`, `[{"op":"add","path":"/b","value":1},{"op":"test","path":"/a","value":2}]`, fails},
		{`{"a":1}`, `[{"op":"remove","path":"/b"}]`, fails},
		{`{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`, fails},
		{`{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`, fails},
		{`{"a":[1]}`, `[{"op":"add","path":"/a/5","value":1}]`, fails},
		{`{"a":[1]}`, `[{"op":"replace","path":"/a/-1","value":1}]`, fails},
		{`1`, `[{"op":"add","path":"/a","value":1}]`, fails},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, fails},
		{`{"":1}`, `[{"op":"replace","path":"/","value":2}]`, fails}, // a limit of ours
	}
	for _, tt := range tests {
		got, err := applyPatch(json.RawMessage(tt.doc), json.RawMessage(tt.patch))
		if (err != nil) != (tt.want == fails) || string(got) != tt.want {
			t.Errorf("%s + %s = %s, %v; want %q", tt.doc, tt.patch, got, err, tt.want)
		}
	}
}

func TestApplyPatchBoundsCopies(t *testing.T) {
	t.Parallel()
	ops := []json.RawMessage{json.RawMessage(`{"op":"add","path":"/a","value":["0123456789"]}`)}
	for range 60 {
		ops = append(ops, json.RawMessage(`{"op":"copy","from":"/a","path":"/a/-"}`))
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := applyPatch(json.RawMessage(`{}`), patch); err == nil {
		t.Error("patch that doubles a document 60 times: got no error, want one")
	}
}

func FuzzApplyPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), []byte(`[{"op":"copy","from":"/a/1","path":"/c"},{"op":"move","from":"/a","path":""},{"op":"test","path":"/0","value":1}]`))
	f.Add([]byte(`null`), []byte(`[{"op":"remove","path":""},{"op":"add","path":"/a","value":1}]`))
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		if validJSON(doc) != nil || validJSON(patch) != nil || checkPatch(trimmed(patch)) != nil {
			return
		}
		out, err := applyPatch(doc, patch)
		if err == nil && validJSON(out) != nil {
			t.Errorf("%s + %s = %s, want valid JSON", doc, patch, out)
		}
	})
}
