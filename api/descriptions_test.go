package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
)

// describedItem is a thread of a list, or its summary.
type describedItem struct {
	ThreadID   string            `json:"threadId"`
	Title      string            `json:"title"`
	Metadata   map[string]string `json:"metadata"`
	Created    string            `json:"createdAt"`
	WaitingFor []string          `json:"waitingFor"`
}

// said makes an input whose only message is text of a user.
func said(text string) func(*agui.RunAgentInput) {
	return func(in *agui.RunAgentInput) { in.Messages[0].Content = agui.TextContent(text) }
}

func TestTitleIsOfFirstMessageUntilItIsSet(t *testing.T) {
	t.Parallel()
	n := setup(t, withThreadList(t))
	n.answerRuns()
	n.postMessage("t1", "r1", said("# **Refund** order 42\nplease\u202e!"))
	n.postMessage("t1", "r2", said("and another"))
	want := func(title string) {
		t.Helper()
		var shown describedItem
		n.get("/v1/threads/t1", &shown)
		wantEqual(t, "title of the summary", shown.Title, title)
		if _, err := time.Parse(time.RFC3339, shown.Created); err != nil {
			t.Errorf("createdAt of the summary: %v", err)
		}
		n.awaitTitles("", "t1 "+title)
	}
	want("Refund order 42 please!")
	n.do(http.MethodPut, "/v1/threads/t1/title", `{"title":"Órder 42"}`).mustStatus(t, "set", http.StatusOK)
	want("Órder 42")
	n.postMessage("t1", "r3")
	want("Órder 42")
	n.do(http.MethodPut, "/v1/threads/t1/title", `{"title":""}`).mustStatus(t, "restore", http.StatusOK)
	want("Refund order 42 please!")

	for body, pointer := range map[string]string{
		`{}`:                     "/title",
		`{"title":"two\nlines"}`: "/title",
		`{"title":"a\u202eb"}`:   "/title",
		`{"title":" space"}`:     "/title",
		`{"title":"` + strings.Repeat("x", 81) + `"}`: "/title",
		`{"title":"x","name":"y"}`:                    "/name",
	} {
		a := n.do(http.MethodPut, "/v1/threads/t1/title", body)
		if a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("title %s: got %d at %q, want 400 at %q", body, a.status, a.problem.Pointer, pointer)
		}
	}
	n.do(http.MethodPut, "/v1/threads/none/title", `{"title":"x"}`).mustStatus(t, "unknown thread", http.StatusNotFound)
	n.do(http.MethodPost, "/v1/threads/t1/runs/r3/fork", `{"threadId":"t2"}`).mustStatus(t, "fork", http.StatusCreated)
	n.awaitTitles("", "t2 Refund order 42 please!", "t1 Refund order 42 please!")
}

// awaitTitles waits until a list has the threads with their titles.
func (n *node) awaitTitles(query string, want ...string) {
	n.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		var p struct {
			Items []describedItem `json:"items"`
		}
		n.get("/v1/threads"+query, &p)
		all := []string{}
		for _, it := range p.Items {
			all = append(all, strings.TrimSpace(it.ThreadID+" "+it.Title))
		}
		if slices.Equal(all, want) || len(all)+len(want) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-n.ctx().Done():
			n.t.Fatalf("%s: got %q, want %q", query, all, want)
		}
	}
}

func TestSearchThreads(t *testing.T) {
	t.Parallel()
	n := setup(t, withThreadList(t))
	n.answerRuns()
	n.postMessage("t1", "r", said("Refund order 42"), withForwardedProps(`{"perdure":{"metadata":{"customer":"ÄCME","case":"7"}}}`))
	n.postMessage("t2", "r", said("Weather in Zürich"))
	n.temporal.start = func(in runs.Input) error { n.interrupts(n.begin(in, "e")); return nil }
	n.postMessage("t3", "r", said("Pay"))
	for query, want := range map[string][]string{
		"?q=REFUND":                                {"t1 Refund order 42"},
		"?q=z%C3%9Crich":                           {"t2 Weather in Zürich"},
		"?q=%C3%A4cme":                             {"t1 Refund order 42"},
		"?q=nothing":                               nil,
		"?q=r&status=idle":                         {"t2 Weather in Zürich", "t1 Refund order 42"},
		"?waitingFor=approval":                     {"t3 Pay"},
		"?waitingFor=question":                     nil,
		"?createdBefore=2000-01-01T00:00:00Z":      nil,
		"?q=pay&createdAfter=2000-01-01T00:00:00Z": {"t3 Pay"},
		"?owner=ann":                               nil,
	} {
		n.awaitTitles(query, want...)
	}
	for query, parameter := range map[string]string{
		"?waitingFor=nothing":            "waitingFor",
		"?q=two%0Alines":                 "q",
		"?q=" + strings.Repeat("x", 321): "q",
		"?createdAfter=noon":             "createdAfter",
	} {
		if a := n.do(http.MethodGet, "/v1/threads"+query, ""); a.status != http.StatusBadRequest || a.problem.Parameter != parameter {
			t.Errorf("%s: got %d about %q, want 400 about %q", query, a.status, a.problem.Parameter, parameter)
		}
	}
	// Later inputs add to the metadata, and remove what they set to "".
	n.answerRuns()
	n.postMessage("t2", "r2", withForwardedProps(`{"perdure":{"history":"append","metadata":{"a":"1","b":"2"}}}`))
	n.postMessage("t2", "r3", withForwardedProps(`{"perdure":{"history":"append","metadata":{"a":"","c":"3"}}}`))
	wantMetadata := func(want map[string]string) {
		t.Helper()
		var shown describedItem
		n.get("/v1/threads/t2", &shown)
		wantEqual(t, "metadata", fmt.Sprint(shown.Metadata), fmt.Sprint(want))
	}
	wantMetadata(map[string]string{"b": "2", "c": "3"})
	n.do(http.MethodPut, "/v1/threads/t2/metadata", `{"metadata":{"d":"4"}}`).mustStatus(t, "replace", http.StatusOK)
	wantMetadata(map[string]string{"d": "4"})
	n.awaitTitles("?q=4&status=idle", "t2 Weather in Zürich", "t1 Refund order 42")
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprintf(`"n%d":"v"`, i)
	}
	for metadata, pointer := range map[string]string{
		`{"":"v"}`: "/metadata", `{"a/b":"` + strings.Repeat("x", 257) + `"}`: "/metadata/a~1b", `{"` + strings.Repeat("x", 65) + `":"v"}`: "/metadata",
		`{"a":"\u0000"}`: "/metadata/a", "{" + strings.Join(many, ",") + "}": "/metadata", "null": "/metadata",
	} {
		a := n.do(http.MethodPut, "/v1/threads/t2/metadata", `{"metadata":`+metadata+`}`)
		if a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("metadata %s: got %d at %q, want 400 at %q", metadata, a.status, a.problem.Pointer, pointer)
		}
		if metadata == "null" {
			continue
		}
		in := inputOf("r9", "x")
		in.ForwardedProps = []byte(`{"perdure":{"metadata":` + metadata + `}}`)
		if a := n.post(in); a.status != http.StatusBadRequest || a.problem.Pointer != "/forwardedProps/perdure"+pointer {
			t.Errorf("metadata %s of an input: got %d at %q, want 400 at %q", metadata, a.status, a.problem.Pointer, "/forwardedProps/perdure"+pointer)
		}
	}
}

// TestDescriptionsFollowAccess: only callers that may send input describe a thread, and a search
// finds only threads that its caller may read.
func TestDescriptionsFollowAccess(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	bob := headersOf("bob")
	found := func(headers []string) bool {
		a := f.do(http.MethodGet, "/v1/threads?q=alpha+only", "", headers...)
		a.mustStatus(t, "search", http.StatusOK)
		return strings.Contains(a.body, mark)
	}
	f.share(t, `[]`)
	wantEqual(t, "found by the owner, by another user", fmt.Sprint(found(alpha), found(bob)), "true false")
	f.do(http.MethodPut, "/v1/threads/t/title", `{"title":"x"}`, bob...).mustStatus(t, "title by another user", http.StatusForbidden)
	f.share(t, `[{"subject":"bob","access":"read"}]`)
	wantEqual(t, "found by a reader", found(bob), true)
	f.do(http.MethodPut, "/v1/threads/t/metadata", `{"metadata":{}}`, bob...).mustStatus(t, "metadata by a reader", http.StatusForbidden)
	f.share(t, `[{"subject":"bob","access":"run"}]`)
	f.do(http.MethodPut, "/v1/threads/t/title", `{"title":"x"}`, bob...).mustStatus(t, "title by a user with the access run", http.StatusOK)
}
