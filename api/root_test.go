package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestRoot: the root leads to the agents, the readiness check, the OpenAPI document and pages of
// the documentation that exist, as JSON and as a page for browsers.
func TestRoot(t *testing.T) {
	t.Parallel()
	n := setup(t)
	var root struct{ Links map[string]string }
	if a := n.do(http.MethodGet, "/", ""); json.Unmarshal([]byte(a.body), &root) != nil {
		t.Fatalf("GET /: %s", a.body)
	}
	page := n.do(http.MethodGet, "/", "", "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Errorf("a browser gets %s", page.header.Get("Content-Type"))
	}
	for _, name := range []string{"agents", "readiness", "openapi", "reference", "firstAgent", "documentation"} {
		link := root.Links[name]
		if link == "" || !strings.Contains(page.body, `href="`+link+`"`) {
			t.Errorf("the page does not have the link %s %q:\n%s", name, link, page.body)
		}
		if file, isPage := strings.CutPrefix(link, "https://github.com/perdure/perdure/blob/main/"); isPage {
			if _, err := os.Stat("../" + file); err != nil {
				t.Error(err)
			}
			continue
		}
		if a := n.do(http.MethodGet, link, ""); a.status == http.StatusNotFound {
			t.Errorf("GET %s: %s", link, a.body)
		}
	}
}
