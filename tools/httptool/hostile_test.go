package httptool_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/httptool"
)

// TestArgumentsStayInTheirPlaces: arguments come from a model, which may have copied them from
// hostile text.
func TestArgumentsStayInTheirPlaces(t *testing.T) {
	t.Parallel()
	server, journal := echo(t, nil)
	tool := guarded(t, httptool.Config{
		Method: "GET", URL: server.URL + "/orders/{id}{version}/items?q={q}&p=x{q}", Parameters: properties("id version", "id", "version", "q"),
	}, local)
	for _, tt := range []struct{ name, arguments, want string }{
		{"step up", `{"id":"..","version":1}`, `/id: must have no segment ".."`},
		{"several steps", `{"id":"../../admin","version":1}`, `/id: must have no segment ".."`},
		{"steps of Windows", `{"id":"..\\..\\admin","version":1}`, `/id: must have no segment ".."`},
		{"steps with parameters", `{"id":"..;/admin","version":1}`, `/id: must have no segment ".."`},
		{"escaped step", `{"id":"%2e%2e%2fadmin","version":1}`, `/id: must have no segment ".."`},
		{"dot segment that is escaped twice", `{"id":"%252e%252e%252fadmin","version":1}`, `/id: must have no segment ".."`},
		{"step in two parts", `{"id":".","version":"."}`, `/id: must have no segment "."`},
		{"nothing", `{"id":"","version":1}`, "/id: must be a non-empty string"},
		{"null", `{"id":null,"version":1}`, "/id: must be a non-empty string"},
		{"object", `{"id":{"a":1},"version":1}`, "/id: must be a non-empty string"},
		{"list", `{"id":["a"],"version":1}`, "/id: must be a non-empty string"},
		{"another request", `{"id":"x HTTP/1.1\r\nHost: evil\r\n\r\n","version":1}`, "/id: must have no control characters"},
		{"zero byte", `{"id":"x\u0000","version":1}`, "/id: must have no control characters"},
		{"list in the middle of a value", `{"id":"x","version":1,"q":["a","b"]}`, "/q: must not be a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(tt.arguments)})
			if err != nil || !result.IsError || !strings.HasPrefix(result.Content, "invalid arguments: "+tt.want) {
				t.Errorf("%+v, %v; want %s", result, err, tt.want)
			}
		})
	}
	if got := journal.requests(); len(got) > 0 {
		t.Fatalf("requests = %+v, want none", got)
	}
	for arguments, want := range map[string]string{
		`{"id":"@evil.example:80/#?","version":1}`:           "/orders/@evil.example:80%2F%23%3F1/items",
		`{"id":"x","version":1,"q":"1&admin=true#\r\nA: b"}`: "/orders/x1/items?q=1%26admin%3Dtrue%23%0D%0AA%3A+b&p=x1%26admin%3Dtrue%23%0D%0AA%3A+b",
		`{"id":"...","version":".."}`:                        "/orders/...../items",
	} {
		result, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(arguments)})
		if got := journal.requests(); err != nil || strings.Contains(arguments, "...") == !result.IsError || !result.IsError && got[len(got)-1].URI != want {
			t.Errorf("%s: got %+v, %v and the requests %+v, want %s", arguments, result, err, got, want)
		}
	}
}

// TestArgumentsDoNotChangeHost: in a template whose whole path consists of arguments, no argument
// changes the host.
func TestArgumentsDoNotChangeHost(t *testing.T) {
	t.Parallel()
	server, journal := echo(t, nil)
	tool := guarded(t, httptool.Config{Method: "GET", URL: server.URL + "/{a}/{b}", Parameters: properties("a b", "a", "b")}, local)
	for _, a := range []string{"/evil.example", `\\evil.example`, "@evil.example", "//evil.example/x", "http://evil.example"} {
		arguments, err := json.Marshal(map[string]string{"a": a, "b": "c"})
		if err != nil {
			t.Fatal(err)
		}
		if result, err := tool.Call(t.Context(), tools.Call{Arguments: arguments}); err != nil || result.IsError {
			t.Errorf("%s: got %+v, %v, want no error", a, result, err)
		}
	}
	if got := journal.requests(); len(got) != 5 {
		t.Errorf("requests: got %d, want 5: %+v", len(got), got)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	server, journal := echo(t, nil)
	strict := httptool.Environment{Secret: local.Secret}
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "100.64.0.1"} {
		tool := guarded(t, httptool.Config{Method: "GET", URL: "http://" + host + "/latest/meta-data"}, strict)
		result, err := tool.Call(t.Context(), tools.Call{})
		if want := "shop failed: the address of " + host + " is not on the public internet, which is not allowed"; err != nil || !result.IsError || result.Content != want {
			t.Errorf("%s: got %+v, %v, want %s", host, result, err, want)
		}
	}
	if got := journal.requests(); len(got) > 0 {
		t.Errorf("requests = %+v, want none", got)
	}
}

func TestProxiesOfEnvironmentAreIgnored(t *testing.T) {
	proxy, journal := echo(t, nil)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	tool := guarded(t, httptool.Config{Method: "GET", URL: "http://shop.invalid/"}, local)
	if _, err := tool.Call(t.Context(), tools.Call{}); err == nil && len(journal.requests()) > 0 {
		t.Errorf("requests to the proxy = %d, want none", len(journal.requests()))
	}
}

// elsewhere starts a server that redirects /n to the n-th location.
func elsewhere(t *testing.T, to func(n int) string) *httptest.Server {
	t.Helper()
	server, _ := echo(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Set-Cookie", "session="+r.URL.Path)
		if r.Header.Get("Cookie") != "" {
			t.Errorf("cookie = %s, want none", r.Header.Get("Cookie"))
		}
		if target := to(n); target != "" {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "arrived")
	})
	return server
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other, journal := echo(t, nil)
	otherHost := strings.TrimPrefix(other.URL, "http://")
	secret := map[string]string{"Authorization": "Bearer ${secret:SHOP_TOKEN}", "X-Api-Key": "${secret:SHOP_TOKEN}"}
	call := func(t *testing.T, server *httptest.Server, allowed ...string) tools.Result {
		t.Helper()
		tool := guarded(t, httptool.Config{Method: "POST", URL: server.URL + "/0", Headers: secret, AllowedHosts: allowed}, local)
		result, err := tool.Call(t.Context(), tools.Call{IdempotencyKey: "r1/c1", Arguments: json.RawMessage(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	until := func(last int) func(int) string {
		return func(n int) string {
			if n == last {
				return ""
			}
			return "/" + strconv.Itoa(n+1)
		}
	}
	if result := call(t, elsewhere(t, until(5))); result.IsError || result.Content != "arrived" {
		t.Errorf("five redirects: got %+v, want arrived", result)
	}
	for name, tt := range map[string]struct {
		to   func(int) string
		want string
	}{
		"six":                    {until(6), "there are more than 5 redirects"},
		"another host":           {func(int) string { return other.URL }, `a redirect leads to "` + otherHost + `", which is not allowed`},
		"metadata":               {func(int) string { return "http://169.254.169.254/" }, `a redirect leads to "169.254.169.254", which is not allowed`},
		"this host by its name":  {func(int) string { return "http://localhost" }, `a redirect leads to "localhost", which is not allowed`},
		"a file":                 {func(int) string { return "file:///etc/passwd" }, "a redirect leads from https to http"},
		"a password in its host": {func(int) string { return "http://u:p@" + otherHost }, "a redirect has a password in its URL"},
	} {
		t.Run(name, func(t *testing.T) {
			if result := call(t, elsewhere(t, tt.to)); !result.IsError || result.Content != "shop failed: "+tt.want {
				t.Errorf("%+v, want %s", result, tt.want)
			}
		})
	}
	if got := journal.requests(); len(got) > 0 {
		t.Fatalf("requests to the other host = %+v, want none", got)
	}
	if result := call(t, elsewhere(t, func(int) string { return other.URL + "/x" }), otherHost); result.IsError {
		t.Fatalf("redirect to an allowed host: got %+v, want no error", result)
	}
	got := journal.requests()[0]
	if got.Body != `{"a":1}` || got.Header.Get("Authorization")+got.Header.Get("X-Api-Key")+got.Header.Get("Referer")+got.Header.Get("Idempotency-Key") != "" {
		t.Errorf("request to the other host = %+v, want the body without credentials", got)
	}
}

func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for line := []byte(strings.Repeat("a", 1<<16)); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "[truncated: the answer has more than 1048448 bytes]"},
		"endless failure": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			for line := []byte(strings.Repeat("a", 1<<16)); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "HTTP 400 Bad Request: aaa"},
		"bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			packed := gzip.NewWriter(w)
			for range 100 {
				if _, err := packed.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			_ = packed.Close()
		}, "[truncated"},
		"secrets in its words": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<10-8)+token) // at the end of the excerpt
		}, "xx[secret"},
		"secrets as JSON": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(r.Header)
		}, `"Bearer [secret]"`},
		"large headers": {func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				w.Header().Add("X", strings.Repeat("x", 1<<10))
			}
		}, "shop failed: the connection to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := echo(t, tt.answer)
			tool := guarded(t, httptool.Config{Method: "GET", URL: server.URL, Headers: map[string]string{"Authorization": "Bearer ${secret:SHOP_TOKEN}"}}, local)
			result, err := tool.Call(t.Context(), tools.Call{})
			text := result.Content
			if away := (*tools.UnavailableError)(nil); errors.As(err, &away) {
				text = away.Text
			}
			if !strings.Contains(text, tt.want) || len(text) > tools.DefaultMaxResult {
				t.Errorf("result of %d bytes: %.100s … %s, %v, want %s within %d bytes", len(text), text, text[max(len(text)-100, 0):], err, tt.want, tools.DefaultMaxResult)
			}
			if strings.Contains(text, token[:6]) {
				t.Error("result has the secret, want it redacted")
			}
		})
	}
}
