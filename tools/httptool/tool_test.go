package httptool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/httptool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "s3cr3t/token"

// local allows tools to reach servers of tests.
var local = httptool.Environment{
	AllowPrivate: true,
	Secret:       func(name string) string { return map[string]string{"SHOP_TOKEN": token}[name] },
}

// properties returns the schema of arguments of any type, some of which are required.
func properties(required string, names ...string) json.RawMessage {
	all := map[string]any{}
	for _, name := range names {
		all[name] = map[string]any{}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": all, "required": strings.Fields(required)})
	if err != nil {
		return nil
	}
	return schema
}

// guarded creates a tool in the same way as a worker.
func guarded(t *testing.T, cfg httptool.Config, env httptool.Environment) tools.Tool {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "shop"
	}
	made, err := httptool.New(cfg, env)
	if err != nil {
		t.Fatal(err)
	}
	tool, err := tools.Guard(made)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// request is a request that a server received.
type request struct {
	Method, URI, Body string
	Header            http.Header
}

// journal has the requests that a server received, in order.
type journal struct {
	mu  sync.Mutex
	all []request
}

// requests returns the requests so far.
func (j *journal) requests() []request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.all)
}

// echo returns a server that records its requests.
func echo(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *journal) {
	t.Helper()
	j := &journal{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		j.mu.Lock()
		j.all = append(j.all, request{r.Method, r.RequestURI, string(body), r.Header})
		j.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, j
}

func TestRequests(t *testing.T) {
	t.Parallel()
	const query = "/orders/{id}?tag={tags}&q={q}&page=x{page}y&fixed=a%20b"
	tests := []struct {
		name, method, url string
		form              bool
		arguments         string
		wantURI, wantBody string
	}{
		{"path and JSON body", "POST", "/orders/{id}/refund", false, `{"id":"a b","amount":1.50,"note":"<é>","deep":{"x":[1,2]}}`,
			"/orders/a%20b/refund", `{"amount":1.50,"deep":{"x":[1,2]},"note":"\u003cé\u003e"}`},
		{"no arguments for the body", "PUT", "/orders/{id}", false, `{"id":7}`, "/orders/7", `{}`},
		{"form", "POST", "/orders/{id}", true, `{"id":true,"a":"1&2","list":["x",3],"none":null,"deep":{"x":1}}`,
			"/orders/true", "a=1%262&deep=%7B%22x%22%3A1%7D&list=x&list=3"},
		{"query", "GET", query, false, `{"id":"7","tags":["a&b","c"],"q":"x=y#z?","page":2,"z":"é","more":[true]}`,
			"/orders/7?tag=a%26b&tag=c&q=x%3Dy%23z%3F&page=x2y&fixed=a%20b&more=true&z=%C3%A9", ""},
		{"query without omitted arguments", "DELETE", query, false, `{"id":"7","q":null}`, "/orders/7?fixed=a%20b", ""},
		{"numbers as they are written", "GET", "/{id}", false, `{"id":1e3,"n":1.0}`, "/1e3?n=1.0", ""},
		{"no path", "GET", "", false, `{"a":1}`, "/?a=1", ""},
		{"a slash stays in its segment", "GET", "/repos/{id}/x", false, `{"id":"own/er?a=b#c;d"}`, "/repos/own%2Fer%3Fa=b%23c%3Bd/x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, journal := echo(t, nil)
			tool := guarded(t, httptool.Config{
				Method: tt.method, URL: server.URL + tt.url, Form: tt.form, Parameters: properties("id", "id", "tags", "q", "page"),
				Headers: map[string]string{"Authorization": "Bearer ${secret:SHOP_TOKEN}", "X-Plain": "v"},
			}, local)
			arguments := tt.arguments
			if tt.url == "" {
				arguments = `{"id":"","a":1}`
				tt.wantURI = "/?a=1&id="
			}
			result, err := tool.Call(t.Context(), tools.Call{ID: "c1", IdempotencyKey: "r1/c1", Arguments: json.RawMessage(arguments)})
			got := journal.requests()
			if err != nil || result.IsError || len(got) != 1 {
				t.Fatalf("got %+v, %v after %d requests, want a result after one", result, err, len(got))
			}
			if r := got[0]; r.Method != tt.method || r.URI != tt.wantURI || r.Body != tt.wantBody {
				t.Errorf("got %s %s %s,\nwant %s %s %s", r.Method, r.URI, r.Body, tt.method, tt.wantURI, tt.wantBody)
			}
			header := got[0].Header
			if header.Get("Authorization") != "Bearer "+token || header.Get("X-Plain") != "v" || header.Get("Idempotency-Key") != "r1/c1" {
				t.Errorf("headers = %v, want the token, X-Plain and the idempotency key", header)
			}
			want := map[bool]string{true: "application/x-www-form-urlencoded", false: "application/json"}[tt.form]
			if tt.wantBody != "" && header.Get("Content-Type") != want {
				t.Errorf("content type = %s, want %s", header.Get("Content-Type"), want)
			}
		})
	}
}

// TestTraceContext: a request carries the trace context and no baggage. A host that it is
// redirected to gets neither.
func TestTraceContext(t *testing.T) { //nolint:paralleltest // sets the process's propagator
	before := otel.GetTextMapPropagator()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	otel.SetTextMapPropagator(both)
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := both.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent, "tracestate": "vendor=1", "baggage": "user=eve"})
	other, there := echo(t, nil)
	server, here := echo(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	tool := guarded(t, httptool.Config{Method: "POST", URL: server.URL, AllowedHosts: []string{strings.TrimPrefix(other.URL, "http://")}}, local)
	if result, err := tool.Call(ctx, tools.Call{Arguments: json.RawMessage("{}")}); err != nil || result.IsError {
		t.Fatalf("call = %+v, %v, want no error", result, err)
	}
	if h := here.requests()[0].Header; h.Get("Traceparent") != parent || h.Get("Tracestate") != "vendor=1" || h.Get("Baggage") != "" {
		t.Errorf("headers at the tool's host = %v, want the trace without baggage", h)
	}
	if h := there.requests()[0].Header; h.Get("Traceparent")+h.Get("Tracestate")+h.Get("Baggage") != "" {
		t.Errorf("headers at the other host = %v, want no trace", h)
	}
}

func TestIdempotencyKeysFitHeader(t *testing.T) {
	t.Parallel()
	server, journal := echo(t, nil)
	tool := guarded(t, httptool.Config{Method: "POST", URL: server.URL}, local)
	for _, key := range []string{"rün\r\nX-Evil: 1/c", strings.Repeat("k", 300), "rün\r\nX-Evil: 1/c"} {
		if result, err := tool.Call(t.Context(), tools.Call{IdempotencyKey: key}); err != nil || result.IsError {
			t.Fatalf("call = %+v, %v, want no error", result, err)
		}
	}
	got := journal.requests()
	first, second, again := got[0].Header.Get("Idempotency-Key"), got[1].Header.Get("Idempotency-Key"), got[2].Header.Get("Idempotency-Key")
	if len(first) != 64 || len(second) != 64 || first == second || first != again || got[0].Header.Get("X-Evil") != "" {
		t.Errorf("idempotency keys = %q, %q, %q, want the first and the third equal, and the second different", first, second, again)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	png := base64.StdEncoding.EncodeToString([]byte("picture"))
	tests := []struct {
		name      string
		method    string
		mediaType string
		status    int
		body      string
		want      tools.Result
	}{
		{"JSON is passed on unchanged", "GET", "application/json", 200, `{"a": 1}` + "\n", tools.Result{Content: `{"a": 1}` + "\n"}},
		{"text", "GET", "text/plain; charset=utf-8", 201, "hi", tools.Result{Content: "hi"}},
		{"a dialect of JSON", "GET", "application/hal+json", 200, "{}", tools.Result{Content: "{}"}},
		{"nothing", "POST", "", 204, "", tools.Result{Content: "HTTP 204 No Content. The answer is empty."}},
		{"image", "GET", "image/png", 200, "picture", tools.Result{
			Content: "image/png, 7 bytes", Parts: []llm.Part{llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: png}},
		}},
		{"audio", "GET", "audio/wav", 200, "picture", tools.Result{
			Content: "audio/wav, 7 bytes", Parts: []llm.Part{llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: png}},
		}},
		{"content that is not text", "GET", "application/zip", 200, "PK", tools.Result{Content: "HTTP 200 OK. The answer is application/zip, which is not supported."}},
		{"bytes that are not named", "GET", "", 200, "\xff\xfe", tools.Result{Content: "HTTP 200 OK. The answer is binary data without a content type."}},
		{"long", "GET", "text/plain", 200, long, tools.Result{Content: long[:1<<20-128] + "\n[truncated: the answer has more than 1048448 bytes]"}},
		{"large image", "GET", "image/png", 200, strings.Repeat("x", 13<<20), tools.Result{Content: "HTTP 200 OK. The answer is image/png of more than 12582912 bytes, too large to show."}},
		{"failure", "GET", "application/json", 404, `{"detail": "no such order"}`, tools.Result{Content: `HTTP 404 Not Found: {"detail": "no such order"}`, IsError: true}},
		{"failure without words", "GET", "image/png", 500, "x", tools.Result{Content: `HTTP 500 Internal Server Error`, IsError: true}},
		{"failure of many words", "GET", "text/html", 400, long, tools.Result{Content: "HTTP 400 Bad Request: " + long[:2<<10], IsError: true}},
		{"redirect to nowhere", "GET", "", 304, "", tools.Result{Content: "HTTP 304 Not Modified", IsError: true}},
		{"headers", "HEAD", "text/plain", 200, "abc", tools.Result{Content: "HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, _ := echo(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{tt.mediaType}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			result, err := guarded(t, httptool.Config{Method: tt.method, URL: server.URL}, local).Call(t.Context(), tools.Call{})
			if diff := cmp.Diff(tt.want, result); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%.800s", err, diff)
			}
		})
	}
}

// TestFailedRequests: a request without an answer may be repeated. The caller knows how often.
func TestFailedRequests(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
		after  time.Duration
	}{
		{"too many", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}, "HTTP 429 Too Many Requests: slow down", 7 * time.Second},
		{"unavailable until a time", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", soon)
			w.WriteHeader(503)
		}, "HTTP 503 Service Unavailable", time.Hour},
		{"bad gateway", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, "HTTP 502 Bad Gateway", 0},
		{"hung up", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
			"shop failed: the connection to HOST was lost before the answer; the call may have taken effect", 0},
		{"hung up in the middle", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "hal")
		}, "shop failed: the connection to HOST was lost during the answer; the call may have taken effect", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, journal := echo(t, tt.answer)
			_, err := guarded(t, httptool.Config{Method: "POST", URL: server.URL}, local).Call(t.Context(), tools.Call{IdempotencyKey: "k"})
			var away *tools.UnavailableError
			if !errors.As(err, &away) {
				t.Fatalf("error = %v, want an UnavailableError", err)
			}
			want := strings.ReplaceAll(tt.want, "HOST", strings.TrimPrefix(server.URL, "http://"))
			if away.Text != want || away.RetryAfter.Round(time.Minute) != tt.after.Round(time.Minute) {
				t.Errorf("got %q after %s, want %q after %s", away.Text, away.RetryAfter, want, tt.after)
			}
			if got := journal.requests(); len(got) != 1 {
				t.Errorf("number of requests = %d, want 1: nothing repeats them", len(got))
			}
		})
	}
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(nil)
		server.Close()
		_, err := guarded(t, httptool.Config{Method: "POST", URL: server.URL}, local).Call(t.Context(), tools.Call{})
		var away *tools.UnavailableError
		if !errors.As(err, &away) || !strings.HasSuffix(away.Text, "could not be reached, and nothing was sent") {
			t.Errorf("error = %v, want that nothing was sent", err)
		}
	})
}

// TestRequestsAreNotRepeated: net/http would repeat a request with an Idempotency-Key by itself
// when a reused connection breaks.
func TestRequestsAreNotRepeated(t *testing.T) {
	t.Parallel()
	var hangUp atomic.Bool
	server, journal := echo(t, func(http.ResponseWriter, *http.Request) {
		if hangUp.Swap(true) {
			panic(http.ErrAbortHandler)
		}
	})
	for _, method := range []string{"GET", "POST"} {
		hangUp.Store(false)
		before := len(journal.requests())
		tool := guarded(t, httptool.Config{Method: method, URL: server.URL, Idempotent: true}, local)
		if result, err := tool.Call(t.Context(), tools.Call{IdempotencyKey: "a"}); err != nil || result.IsError {
			t.Fatalf("first call = %+v, %v, want no error", result, err)
		}
		if _, err := tool.Call(t.Context(), tools.Call{IdempotencyKey: "b"}); err == nil {
			t.Fatal("second call: got an answer, want an error")
		}
		if n := len(journal.requests()) - before; n != 2 {
			t.Errorf("%s: number of requests = %d, want 2", method, n)
		}
	}
}

func TestTimeAndCancel(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		asked <- struct{}{}
		<-r.Context().Done() // a response that never ends
	}))
	defer server.Close()
	slow := guarded(t, httptool.Config{Method: "POST", URL: server.URL, Timeout: 50 * time.Millisecond}, local)
	go func() { <-asked }()
	result, err := slow.Call(t.Context(), tools.Call{})
	if err != nil || !result.IsError || !strings.HasPrefix(result.Content, "shop did not finish within 50ms; the call may have taken effect") {
		t.Errorf("result = %+v, %v, want a timeout", result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	patient := guarded(t, httptool.Config{Method: "POST", URL: server.URL}, local)
	if _, err := patient.Call(ctx, tools.Call{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	valid := httptool.Config{Name: "a", Method: "GET", URL: "https://shop.example/{id}", Parameters: properties("id", "id", "opt")}
	for _, tt := range []struct {
		change        func(c *httptool.Config)
		wantKey, want string
	}{
		{func(c *httptool.Config) { c.URL = "ftp://shop.example/" }, "http.url", "must begin with https"},
		{func(c *httptool.Config) { c.URL = "shop.example" }, "http.url", "must begin with https"},
		{func(c *httptool.Config) { c.URL = "https://{id}.example/" }, "http.url", "in its host"},
		{func(c *httptool.Config) { c.URL = "https://shop.example:{id}/" }, "http.url", "in its host"},
		{func(c *httptool.Config) { c.URL = "https://{id}" }, "http.url", "in its host"},
		{func(c *httptool.Config) { c.URL = "https://x@{id}/" }, "http.url", "in its host"},
		{func(c *httptool.Config) { c.URL = "{id}://shop.example/" }, "http.url", "must begin with https"},
		{func(c *httptool.Config) { c.URL = "https:///x" }, "http.url", "is not a URL"},
		{func(c *httptool.Config) { c.URL = "https://u:p@shop.example/" }, "http.url", "user or password"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/#x" }, "http.url", "fragment"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/{id}/{" }, "http.url", "brace"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/%zz" }, "http.url", "is not a URL"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/?{id}=1" }, "http.url", "name of a query parameter"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/{nope}" }, "http.url", "{nope}, which is not one of the parameters"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/{opt}" }, "http.url", "must be required"},
		{func(c *httptool.Config) { c.URL = "https://shop.example/" + strings.Repeat("x", 9000) }, "http.url", "at most"},
		{func(c *httptool.Config) { c.Parameters = json.RawMessage(`{"required":"id"}`) }, "parameters", "JSON Schema"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"A B": ""} }, "http.headers.A B", "is not a header name"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"host": "x"} }, "http.headers.host", "is reserved"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"A": "1", "a": "2"} }, "http.headers.", "twice"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"A": "x\r\nB: y"} }, "http.headers.A", "control characters"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"A": "${SHOP}"} }, "http.headers.A", "${secret:NAME}"},
		{func(c *httptool.Config) { c.Headers = map[string]string{"A": "${secret:GONE}"} }, "http.headers", "secret GONE is missing: the worker has no PERDURE_SECRET_GONE"},
		{func(c *httptool.Config) { c.AllowedHosts = []string{"https://x"} }, "http.allowedHosts", "host or host:port"},
	} {
		cfg := valid
		tt.change(&cfg)
		_, err := httptool.New(cfg, local)
		var wrong *httptool.ConfigError
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Key, tt.wantKey) || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("%+v:\n got %v, want %s at %s", cfg, err, tt.want, tt.wantKey)
		}
	}
	if _, err := httptool.New(valid, local); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreReadAtEachCall(t *testing.T) {
	t.Parallel()
	server, journal := echo(t, nil)
	value := "first"
	env := httptool.Environment{AllowPrivate: true, Secret: func(string) string { return value }}
	tool := guarded(t, httptool.Config{Method: "POST", URL: server.URL, Headers: map[string]string{"A": "${secret:X}"}}, env)
	for _, value = range []string{"first", "second", ""} {
		result, err := tool.Call(t.Context(), tools.Call{})
		if err != nil || result.IsError != (value == "") {
			t.Errorf("result = %+v, %v, want an error: %t", result, err, value == "")
		}
	}
	got := journal.requests()
	if seen := []string{got[0].Header.Get("A"), got[1].Header.Get("A")}; len(got) != 2 || !slices.Equal(seen, []string{"first", "second"}) {
		t.Errorf("secrets of the requests = %v, want first and second", seen)
	}
}
