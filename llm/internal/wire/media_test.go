package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

func TestInline(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]llm.Media{
		"data:image/png;base64,aGk=": {MIME: "image/png", Data: "aGk="},
		"data:image/png,hi":          {URL: "data:image/png,hi"},
		"https://x.example/i.png":    {URL: "https://x.example/i.png"},
	} {
		if diff := cmp.Diff(want, Inline(llm.Media{URL: address})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
	both := llm.Media{URL: "data:image/png;base64,aGk=", MIME: "image/gif", Data: "eW8="}
	if diff := cmp.Diff(both, Inline(both)); diff != "" {
		t.Errorf("data goes before the URL (-want +got):\n%s", diff)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mime, data            string
		wantIsText, wantIsPDF bool
		wantText              string
	}{
		{"text/csv; charset=utf-8", "YSxi", true, false, "a,b"},
		{"application/json", "e30=", true, false, "{}"},
		{"text/plain", "", false, false, ""},
		{"text/plain", "/w==", true, false, ""},
		{"text/plain", "?", true, false, ""},
		{"application/pdf", "aGk=", false, true, ""},
		{"/", "aGk=", false, false, ""},
	} {
		media := llm.Media{Kind: llm.MediaDocument, MIME: test.mime, Data: test.data}
		if IsText(media) != test.wantIsText || IsPDF(media) != test.wantIsPDF {
			t.Errorf("%+v is text: %v, PDF: %v, want %v and %v", media, IsText(media), IsPDF(media), test.wantIsText, test.wantIsPDF)
		}
		if text, ok := PlainText(media); test.wantIsText && (ok != (test.wantText != "") || ok && text != test.wantText) {
			t.Errorf("PlainText(%+v) = %q, %v, want %q", media, text, ok, test.wantText)
		}
	}
}

func TestIsWebURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://x.example/a": true, "http://x.example": true, "": false, "http://": false, "file:///etc/passwd": false, "://": false,
	} {
		if got := IsWebURL(llm.Media{URL: address}); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}
