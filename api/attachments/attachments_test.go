package attachments_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/api/attachments"
)

// TestCleanName: a name has no folder, and shows as what it is.
func TestCleanName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/home/ann/c\u00e4t.png":               "c\u00e4t.png",
		`C:\work\a b.pdf`:                      "a b.pdf",
		"line\nbreak\x00\x7f.txt":              "linebreak.txt",
		"invoice\u202efdp.exe":                 "invoicefdp.exe", // shows as invoiceexe.pdf
		"\u2066a\u2069\u200e\u061c.txt":        "a.txt",
		"a\u200b\u200c\u2060\ufeff.pdf":        "a.pdf",
		"a\u2028b\u2029.pdf":                   "ab.pdf",
		"a\u0085b\xff.pdf":                     "ab.pdf",
		"\U0001f469\u200d\U0001f680.png":       "\U0001f469\u200d\U0001f680.png", // one emoji of two
		strings.Repeat("\u00e4", 200) + ".pdf": strings.Repeat("\u00e4", 127),
	} {
		if got := attachments.CleanName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
