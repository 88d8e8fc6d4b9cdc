package cloudevent

import (
	"fmt"
	"strings"
	"testing"
)

// TestDataOfStructuredEvents: data are JSON if their media type says so, and members may have any order.
func TestDataOfStructuredEvents(t *testing.T) {
	t.Parallel()
	const attributes = `"specversion":"1.0","source":"/s","type":"t"`
	for i, tt := range []struct{ members, want string }{
		{`"datacontenttype":"application/vnd.x+json; charset=utf-8","data":{"a":1}`, `{"a":1}`},
		{`"datacontenttype":"application/vnd.x+json","data":"5"`, `"5"`},
		{`"datacontenttype":"text/json","data":{"a":1}`, `{"a":1}`},
		{`"datacontenttype":"text/plain","data":"5"`, `"5"`},
		{`"data_base64":"\/\/\/\/","datacontenttype":"application/octet-stream"`, `"////"`},
		{`"data":{"a": 1}`, `{"a": 1}`},
		{`"datacontenttype":"text/html","data":"<a>&"`, `"<a>&"`},
		{`"datacontenttype":"text/plain; charset=iso-8859-1","data_base64":"6Q=="`, `"6Q=="`},
	} {
		for order, event := range []string{
			`{` + attributes + `,"id":"` + fmt.Sprint(i) + `-0",` + tt.members + `}`,
			`{` + tt.members + `,"id":"` + fmt.Sprint(i) + `-1",` + attributes + `}`,
		} {
			in, err := DecodeJSON([]byte(event))
			if err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			content, err := Content(in)
			if err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			if id := fmt.Sprintf("%d-%d", i, order); string(content.Data) != tt.want || content.ID != id {
				t.Errorf("%s: got the data %s and the ID %s, want %s and %s", event, content.Data, content.ID, tt.want, id)
			}
		}
	}
}

// TestTextOfAttributes: an attribute has no control characters, and nothing that JSON replaces by U+FFFD, because
// different events would have the same ID.
func TestTextOfAttributes(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		`grüße-😀`:                "",
		`a\u0000b`:               "/id must have no control characters",
		`a\u0085b`:               "/id must have no control characters",
		`a\ud800b`:               "/id must be UTF-8, without U+FFFD and surrogates",
		"a\xffb":                 "/id must be UTF-8, without U+FFFD and surrogates",
		strings.Repeat("i", 257): "/id must have at most 256 bytes",
	} {
		in, err := DecodeJSON([]byte(`{"specversion":"1.0","source":"/s","type":"t","id":"` + id + `"}`))
		if err != nil {
			t.Fatalf("%.20q: %v", id, err)
		}
		got := ""
		if _, err = Content(in); err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("%.20q: got %q, want %q", id, got, want)
		}
	}
}
