package attachments_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestForkSharesOwnFiles: a fork gets the files of the thread that is forked. It gets none whose URL a tool, a
// model or a client's result has written: its reader could read a file of another person.
func TestForkSharesOwnFiles(t *testing.T) {
	t.Parallel()
	store, err := files.Open(t.Context(), streamtest.Open(t), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	from, fork := stream.Thread{Tenant: "acme", ID: "t"}, stream.Thread{Tenant: "acme", ID: "fork"}
	put := func(thread, content string) *files.File {
		f, err := store.Put(t.Context(), files.Upload{Tenant: "acme", Owner: "bob", Thread: thread, Body: strings.NewReader(content)})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	own, foreign, deleted := put("t", "own"), put("other", "foreign"), put("t", "deleted")
	if err := store.Delete(t.Context(), "acme", deleted.ID, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var parts []agui.ContentPart
	for _, url := range []string{own.URL(), foreign.URL(), deleted.URL(), "https://example.com/a.png"} {
		parts = append(parts, agui.ContentPart{Type: agui.PartImage, Source: &agui.PartSource{Type: agui.SourceURL, Value: url}})
	}
	message := agui.Message{ID: "m", Role: agui.RoleTool, Content: agui.PartsContent(parts)}
	shared := (&attachments.Attachments{Store: store}).Share(t.Context(), from, fork, slices.Values([]agui.Message{message}))
	foundOwn, err := store.Find(t.Context(), "acme", own.ID)
	foundForeign, foreignErr := store.Find(t.Context(), "acme", foreign.ID)
	if err := errors.Join(shared, err, foreignErr); err != nil {
		t.Fatal(err)
	}
	if !foundOwn.IsOf("fork") || foundForeign.IsOf("fork") {
		t.Errorf("the fork has its own file: %t, and the foreign one: %t, want only its own", foundOwn.IsOf("fork"), foundForeign.IsOf("fork"))
	}
}

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
