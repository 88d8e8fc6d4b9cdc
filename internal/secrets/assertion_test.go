package secrets_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/secrets"
)

// TestAssertionsAreHidden: a Redactor without secrets hides assertions, whole or cut off, and nothing
// else. The texts of a hostile server do not take long.
func TestAssertionsAreHidden(t *testing.T) {
	t.Parallel()
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"` + strings.Repeat("k", 43) + `","typ":"perdure-assertion+jwt"}`))
	other := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`))
	many := strings.Repeat("eyJ", 1<<20)
	for name, tt := range map[string]struct{ text, want string }{
		"whole":           {"a " + header + ".eyJh.c2ln b", "a [secret] b"},
		"in JSON":         {`{"a":"` + header + `.eyJh.c2ln"}`, `{"a":"[secret]"}`},
		"two":             {header + ".eyJh.c2ln," + header + ".eyJi.c2ln", "[secret],[secret]"},
		"no signature":    {header + ".eyJh", "[secret]"},
		"follows letters": {"AeyJ" + header + ".eyJh.c2ln", "AeyJ[secret]"},
		"follows many":    {many + header + ".eyJh.c2ln", many + "[secret]"},
		"other type":      {other + ".eyJh.c2ln", other + ".eyJh.c2ln"},
		"many":            {many + "." + many, many + "." + many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (secrets.Redactor{}).Text(tt.text); got != tt.want {
				t.Errorf("text = %.200q, want %.200q", got, tt.want)
			}
		})
	}
}
