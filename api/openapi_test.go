package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/index/threads"
)

// apiDescription is the OpenAPI description, as clients get it.
type apiDescription struct {
	document   any
	paths      map[string]map[string]any
	components map[string]any
	routes     map[string]*regexp.Regexp // by path
	schemas    *jsonschema.Compiler

	mu       sync.Mutex // of schemas
	compiled map[string]*jsonschema.Schema
}

// described reads the description. It closes all objects that do not allow additional properties:
// an undescribed member of an answer is a mistake in one of the two.
var described = sync.OnceValue(func() *apiDescription {
	w := httptest.NewRecorder()
	api.New(api.Config{}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	document, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		panic(err)
	}
	forbidUnknownMembers(document)
	c := &apiDescription{
		document: document,
		paths:    map[string]map[string]any{}, components: document.(map[string]any)["components"].(map[string]any), routes: map[string]*regexp.Regexp{},
		schemas: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{},
	}
	c.schemas.DefaultDraft(jsonschema.Draft2020)
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource("openapi.json", document); err != nil {
		panic(err)
	}
	segment := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	for path, item := range document.(map[string]any)["paths"].(map[string]any) {
		c.paths[path] = item.(map[string]any)
		c.routes[path] = regexp.MustCompile("^" + segment.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
	}
	return c
})

// forbidUnknownMembers closes the object schemas of a document, so that undescribed members fail
// the test.
func forbidUnknownMembers(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			forbidUnknownMembers(e)
		}
	case map[string]any:
		for _, e := range v {
			forbidUnknownMembers(e)
		}
		if _, open := v["additionalProperties"]; v["type"] == "object" && !open {
			v["additionalProperties"] = false
		}
	}
}

// resolve follows the references of a value, and returns the value and its pointer.
func (c *apiDescription) resolve(v any, pointer string) (any, string) {
	for {
		ref, ok := v.(map[string]any)["$ref"].(string)
		if !ok {
			return v, pointer
		}
		pointer = strings.TrimPrefix(ref, "#")
		name := pointer[strings.LastIndex(pointer, "/")+1:]
		kind := strings.Split(pointer, "/")[2]
		v = c.components[kind].(map[string]any)[name]
	}
}

// body checks a body against the description of its media type.
func (c *apiDescription) body(of any, pointer, contentType string, body []byte) error {
	of, pointer = c.resolve(of, pointer)
	content, _ := of.(map[string]any)["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("got a body of %d bytes, and none is described", len(body))
		}
		return nil
	}
	if content["*/*"] != nil && !strings.HasPrefix(contentType, "application/problem") { // the bytes of a file
		return nil
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || content[kind] == nil {
		return fmt.Errorf("a body of type %q is not described", contentType)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil
	}
	schema, err := c.schema(pointer + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		return err
	}
	values := [][]byte{body}
	if kind == "application/x-ndjson" {
		values = bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	}
	for _, raw := range values {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schema compiles the schema at a pointer, once.
func (c *apiDescription) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled[pointer] == nil {
		s, err := c.schemas.Compile("openapi.json#" + pointer)
		if err != nil {
			return nil, err
		}
		c.compiled[pointer] = s
	}
	return c.compiled[pointer], nil
}

// operation returns the description of a request and its pointer; nil = not described.
func (c *apiDescription) operation(method, path string) (op map[string]any, pointer string) {
	for template, route := range c.routes {
		if op, ok := c.paths[template][strings.ToLower(method)].(map[string]any); ok && route.MatchString(path) {
			return op, "/paths/" + strings.ReplaceAll(template, "/", "~1") + "/" + strings.ToLower(method)
		}
	}
	return nil, ""
}

// wantDescribed checks an accepted request and its answer against the description. A request
// without a description must be refused.
func (c *apiDescription) wantDescribed(t testing.TB, req *http.Request, sent string, a answer) {
	t.Helper()
	if req.Method == http.MethodOptions {
		return // browsers send it, not clients
	}
	if a.status == http.StatusFound && strings.HasPrefix(a.header.Get("Location"), sessions.LoginPath) {
		return // a navigation without a session, to any route
	}
	op, pointer := c.operation(req.Method, req.URL.EscapedPath())
	if op == nil {
		if a.status < 400 {
			t.Errorf("status = %v, want at least %v", a.status, 400)
		}
		return
	}
	status := strconv.Itoa(a.status)
	responses := op["responses"].(map[string]any)
	if responses[status] == nil && a.status >= 400 {
		status = "default"
	}
	if responses[status] == nil {
		t.Errorf("%s %s: status %d is not described, want its description", req.Method, req.URL.Path, a.status)
		return
	}
	if a.problem.Code != "" && !isListed(op, a.status, a.problem.Code) {
		t.Errorf("%s %s: x-codes without %d %s, want it listed", req.Method, req.URL.Path, a.status, a.problem.Code)
	}
	if err := c.body(responses[status], pointer+"/responses/"+status, a.header.Get("Content-Type"), []byte(a.body)); err != nil {
		t.Errorf("%s %s: answer %d does not match the description: %v\n%.500s", req.Method, req.URL.Path, a.status, err, a.body)
	}
	contentType := req.Header.Get("Content-Type")
	if a.status >= 300 || sent == "" || op["requestBody"] == nil || contentType != "" && !strings.HasSuffix(contentType, "/json") {
		return
	}
	if contentType == "" && op["operationId"] == "putAgent" || op["operationId"] == "decideBatch" {
		return // the former is YAML; the latter accepts invalid entries and reports them in its answer
	}
	if err := c.body(op["requestBody"], pointer+"/requestBody", gin.MIMEJSON, []byte(sent)); err != nil {
		t.Errorf("%s %s: accepted request does not match the description: %v\n%.500s", req.Method, req.URL.Path, err, sent)
	}
}

// codesOfAll are the errors that every operation may return. docs/reference/http-api.md lists them.
var codesOfAll = []string{
	"400 invalid_input", "400 invalid_cursor", "401 unauthenticated", "401 session_ended", "403 forbidden", "403 cross_site_request", "403 origin_not_allowed", "404 not_found", "408 body_timeout", "410 gone",
	"413 too_large", "415 unsupported_media_type", "429 rate_limited", "429 quota_exceeded", "500 internal", "503 audit_unavailable", "503 auth_unavailable", "503 node_full", "503 unavailable",
}

// isListed reports whether the description lists an error of an operation.
func isListed(op map[string]any, status int, code string) bool {
	entry := fmt.Sprint(status, " ", code)
	listed, _ := op["x-codes"].([]any)
	return slices.Contains(codesOfAll, entry) || slices.Contains(listed, any(entry))
}

// TestExamplesMatchDescription: the examples of operations are requests and responses that the
// description allows.
func TestExamplesMatchDescription(t *testing.T) {
	t.Parallel()
	c, found := described(), 0
	for path, item := range c.paths {
		for method, value := range item {
			op, _ := value.(map[string]any)
			example, ok := op["x-example"].(map[string]any)
			if !ok {
				continue
			}
			found++
			url, _, _ := strings.Cut(example["path"].(string), "?")
			wantEqual(t, fmt.Sprintf("%s %s: example has a path of the route", method, path), c.routes[path].MatchString(url), true)
			pointer := "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method
			status := fmt.Sprint(example["status"])
			for _, part := range []struct {
				description any
				pointer     string
				body        any
			}{
				{op["requestBody"], pointer + "/requestBody", example["request"]},
				{op["responses"].(map[string]any)[status], pointer + "/responses/" + status, example["response"]},
			} {
				if _, text := part.body.(string); text || part.body == nil {
					continue // not JSON
				}
				body, err := json.Marshal(part.body)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.body(part.description, part.pointer, gin.MIMEJSON, body); err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("number of examples = %v, want at least %v", found, 8)
	}
}

// TestDescriptionHasEveryRoute: the description has exactly the server's routes.
func TestDescriptionHasEveryRoute(t *testing.T) {
	t.Parallel()
	server := api.New(api.Config{Inbox: &approvalroutes.Inbox{Index: &inbox.Index{}}, Threads: &threads.Index{}, Schedules: &schedules.Store{}, Events: &events.Store{}, Audit: &auditroutes.Audit{}, Sessions: &sessions.Sessions{}, Usage: &usage.Ledger{}, Files: &api.Files{}})
	var routes, operations []string
	segment := regexp.MustCompile(`:([a-z]+)`)
	for _, r := range server.Routes() {
		routes = append(routes, r.Method+" "+segment.ReplaceAllString(r.Path, "{$1}"))
	}
	c, ids := described(), map[any]bool{}
	for path, item := range c.paths {
		for method, op := range item {
			if method == "parameters" {
				continue
			}
			operations = append(operations, strings.ToUpper(method)+" "+path)
			id := op.(map[string]any)["operationId"]
			if id == nil {
				t.Fatalf("%s %s: id = nil, want a value", method, path)
			}
			wantEqual(t, fmt.Sprintf("%s %s: operation ID is used before", method, path), ids[id], false)
			ids[id] = true
		}
	}
	slices.Sort(routes)
	slices.Sort(operations)
	for _, r := range routes {
		wantEqual(t, r+" is described", slices.Contains(operations, r), true)
	}
	for _, o := range operations {
		wantEqual(t, o+" is a route", slices.Contains(routes, o), true)
	}
}

// wantNoNulls finds members without a value, as YAML makes of an unquoted text with a comma.
func wantNoNulls(t *testing.T, pointer string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s = null, want a value", pointer)
	case []any:
		for i, e := range v {
			wantNoNulls(t, fmt.Sprint(pointer, "/", i), e)
		}
	case map[string]any:
		for name, e := range v {
			wantNoNulls(t, pointer+"/"+name, e)
		}
	}
}

// TestDescriptionIsComplete: each variable segment of a path is a described parameter, and every
// reference resolves.
func TestDescriptionIsComplete(t *testing.T) {
	t.Parallel()
	c := described()
	wantNoNulls(t, "", c.document)
	segment := regexp.MustCompile(`\{([a-z]+)\}`)
	for path, item := range c.paths {
		var named []string
		list, _ := item["parameters"].([]any)
		for i, p := range list {
			found, _ := c.resolve(p, fmt.Sprintf("/paths/%s/parameters/%d", path, i))
			if found == nil {
				t.Fatalf("%s: found = nil, want a value", path)
			}
			mustEqual[any](t, path+": parameter is required", found.(map[string]any)["required"], true)
			mustEqual[any](t, path+": place of the parameter", found.(map[string]any)["in"], "path")
			named = append(named, found.(map[string]any)["name"].(string))
		}
		var wanted []string
		for _, m := range segment.FindAllStringSubmatch(path, -1) {
			wanted = append(wanted, m[1])
		}
		wantEqual(t, fmt.Sprintf("parameters of %s", path), named, wanted)
	}
	for kind, all := range c.components {
		for name := range all.(map[string]any) {
			if kind == "schemas" {
				if _, err := c.schema("/components/schemas/" + name); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestDescriptionIsPublic: the description needs no credentials, because it has no secrets.
func TestDescriptionIsPublic(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	a := node.do(http.MethodGet, "/openapi.json", "")
	a.wantStatus(t, "status of the description", http.StatusOK)
	wantEqual(t, "content type of the description", a.header.Get("Content-Type"), gin.MIMEJSON)
	if !strings.Contains(a.body, `"openapi":"3.1.1"`) {
		t.Errorf("%d %s: body = %q, want text with %q", a.status, a.header.Get("Content-Type"), a.body, `"openapi":"3.1.1"`)
	}
}
