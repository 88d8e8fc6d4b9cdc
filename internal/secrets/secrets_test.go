package secrets_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

var vault = map[string]string{"SHOP": `p"a/ss`, "LONG": `p"a/ss-word`, "TINY": "abc", "LINES": "a\nb12345"}

// lookup returns a secret of the test.
func lookup(name string) string { return vault[name] }

func TestFill(t *testing.T) {
	t.Parallel()
	texts, key, err := secrets.ParseAll(map[string]string{
		"Authorization": "Bearer ${secret:SHOP}", "X": "${secret:SHOP}-${secret:TINY}", "Plain": "costs $5 {or so}",
	})
	if err != nil || key != "" {
		t.Fatalf("ParseAll: key %q, %v, want no error", key, err)
	}
	filled, _, err := texts.Fill(lookup)
	want := map[string]string{"Authorization": `Bearer p"a/ss`, "X": `p"a/ss-abc`, "Plain": "costs $5 {or so}"}
	if diff := cmp.Diff(want, filled); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestFillNamesMissingSecretsWithoutValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"${secret:SHOP} ${secret:GONE}": "secret GONE is missing: the worker has no PERDURE_SECRET_GONE",
		"${secret:LINES}":               "secret LINES has control characters",
	} {
		texts, _, err := secrets.ParseAll(map[string]string{"A": text})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = texts.Fill(lookup)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		var missing *secrets.MissingError
		if strings.Contains(text, "GONE") && (!errors.As(err, &missing) || missing.Name != "GONE") {
			t.Errorf("error = %T, want a missing secret GONE", err)
		}
	}
}

func TestParseRefusesMalformedReferences(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"${SHOP}", "${secret:shop}", "${secret:SHOP", "${secret:}", "a\r\nb", "${secret:A}\x00"} {
		if _, key, err := secrets.ParseAll(map[string]string{"K": text}); err == nil || key != "K" {
			t.Errorf("ParseAll of %q: got no error at K, want one", text)
		}
	}
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	r := secrets.NewRedactor(vault["SHOP"], vault["LONG"], vault["TINY"], "a<b>&c")
	for text, want := range map[string]string{
		`got Bearer p"a/ss, again p"a/ss`:       `got Bearer [secret], again [secret]`,
		`p"a/ss-word`:                           `[secret]`,
		`{"Authorization":"Bearer p\"a/ss"}`:    `{"Authorization":"Bearer [secret]"}`,
		"/?token=p%22a%2Fss&x=p%22a%2Fss-word":  "/?token=[secret]&x=[secret]",
		`{"x":"a\u003cb\u003e\u0026c","abc":1}`: `{"x":"[secret]","abc":1}`,
		"nothing":                               "nothing",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	result := r.Result(tools.Result{Content: `p"a/ss`, Parts: []llm.Part{llm.Text{Text: `p"a/ss`}, llm.Media{URL: "https://x/p%22a%2Fss"}}})
	want := tools.Result{Content: "[secret]", Parts: []llm.Part{llm.Text{Text: "[secret]"}, llm.Media{URL: "https://x/[secret]"}}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
