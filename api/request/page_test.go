package request_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
)

func TestPage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		items  []string
		cursor string
		want   string
	}{
		"empty":       {nil, "", `{"items":[]}`},
		"last page":   {[]string{"a", "b"}, "", `{"items":["a","b"]}`},
		"with cursor": {[]string{"a"}, `x"y`, `{"items":["a"],"nextCursor":"x\"y"}`},
	} {
		recorder := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(recorder)
		err := request.WritePage(c, tt.items, tt.cursor, func(s string) int { return len(s) }, func(s string) ([]byte, error) { return json.Marshal(s) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := recorder.Body.String(); got != tt.want || recorder.Code != 200 || recorder.Header().Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: got %d %s with %v, want %s as JSON", name, recorder.Code, got, recorder.Header(), tt.want)
		}
	}
}

// goneWriter is the response of a client that is gone.
type goneWriter struct{ *httptest.ResponseRecorder }

func (goneWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

// TestPageIsEncodedAtPaceOfClient: a page is encoded at the pace of its client: nothing is
// encoded for a client that takes no more.
func TestPageIsEncodedAtPaceOfClient(t *testing.T) {
	t.Parallel()
	c, _ := gin.CreateTestContext(goneWriter{httptest.NewRecorder()})
	encoded := 0
	item := []byte(`"` + strings.Repeat("x", 64<<10) + `"`)
	err := request.WritePage(c, make([]struct{}, 100), "", func(struct{}) int { return 0 }, func(struct{}) ([]byte, error) { encoded++; return item, nil })
	if err != nil {
		t.Fatal(err)
	}
	if encoded != 1 {
		t.Errorf("number of encoded items = %d, want 1", encoded)
	}
}
