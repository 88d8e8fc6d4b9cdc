package httptool

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// FuzzURL: for all values, a URL keeps its host, its segments and its parameters, and decoding it
// returns the values.
func FuzzURL(f *testing.F) {
	for _, seed := range [][2]string{{"a", "b"}, {"../..", "x&y=z"}, {"%2e%2e", "#"}, {"a/b\\c", "\r\n"}, {"é\u2028", ""}, {"..%c0%af", "+"}, {";a=b", "%"}} {
		f.Add(seed[0], seed[1])
	}
	template, err := parseURL("https://shop.example:8443/v1/{a}/{a}x/end?fixed=1&q={q}&z=y{q}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, q string) {
		args := arguments{}
		for name, value := range map[string]*string{"a": &a, "q": &q} {
			raw, err := json.Marshal(*value)
			if err != nil {
				t.Fatal(err)
			}
			args[name] = raw
			if err := json.Unmarshal(raw, value); err != nil { // valid UTF-8 from here on
				t.Fatal(err)
			}
		}
		filled, err := template.fill(args, url.Values{"more": {q}})
		if err != nil {
			return
		}
		u, err := url.Parse(filled.String())
		if err != nil {
			t.Fatalf("%s: %v", filled, err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Scheme != "https" || u.Host != "shop.example:8443" || u.User != nil || u.Fragment != "" || len(segments) != 5 {
			t.Fatalf("URL of %q and %q = %s, want the host and the path of the template", a, q, u)
		}
		if back, err := url.PathUnescape(segments[2]); err != nil || back != a || segments[2] == ".." || segments[2] == "." {
			t.Errorf("path of %q = %q, want the same after decoding", a, segments[2])
		}
		values, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(values) != 4 || values.Get("q") != q || values.Get("z") != "y"+q || values.Get("more") != q || values.Get("fixed") != "1" {
			t.Errorf("query of %q = %q, %v, want the same after decoding", q, u.RawQuery, err)
		}
	})
}

// FuzzParseURL: the text in a file is either parsed as a template or rejected.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"https://a.example/{b}?c={d}", "http://{a}", "https://a:1/%zz", "https://[::1]/{a}", "http://a?{b}=c", "https://a/{", "http://a/?&&=&b", "HTTP://A/{x}.{y}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := parseURL(text)
		if err != nil {
			return
		}
		args := arguments{}
		for _, name := range template.names() {
			args[name] = json.RawMessage(`"@evil.example:80/../#?"`)
		}
		if u, err := template.fill(args, nil); err == nil && u.Host != template.base.Host {
			t.Errorf("URL of %s = %s, want the host of the template", text, u)
		}
		for name := range args {
			args[name] = json.RawMessage(`"x"`)
		}
		u, err := template.fill(args, nil)
		if err != nil {
			return
		}
		if again, err := url.Parse(u.String()); err != nil || again.Host != template.base.Host || again.Scheme != template.base.Scheme {
			t.Errorf("URL of %s = %s (%v), want the host of the template", text, u, err)
		}
	})
}
