package secrets

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

const (
	hidden = "[secret]"
	// minSecret is the minimum length of a hidden value, in bytes: a shorter value would match
	// everywhere.
	minSecret = 4
)

// Redactor hides secrets in texts, in their plain form and as encoded in JSON and URLs, and
// assertions. The zero value hides only assertions. It is safe for concurrent use.
type Redactor struct {
	replacer *strings.Replacer // of secrets; nil = there are none
}

// NewRedactor returns a Redactor for the values.
func NewRedactor(values ...string) Redactor {
	var forms []string
	for _, v := range values {
		if len(v) >= minSecret {
			forms = append(forms, v, inJSON(v, false), inJSON(v, true), url.QueryEscape(v), url.PathEscape(v))
		}
	}
	if len(forms) == 0 {
		return Redactor{}
	}
	// The replacer uses the first match in this list. Longer forms come first, because a secret can
	// be the prefix of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, hidden)
	}
	return Redactor{replacer: strings.NewReplacer(pairs...)}
}

// inJSON returns s as encoded in a JSON string, without the quotes. escapeHTML selects the two
// forms that encoders use for <, > and &.
func inJSON(s string, escapeHTML bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	if err := encoder.Encode(s); err != nil { // cannot fail for a string
		return s
	}
	quoted := strings.TrimSpace(b.String())
	return quoted[1 : len(quoted)-1]
}

// Text returns s with its secrets and assertions replaced.
func (r Redactor) Text(s string) string {
	s = hideAssertions(s)
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// Result returns the result with the secrets and assertions in its texts replaced. It does not
// change inline media or the Cause.
func (r Redactor) Result(result tools.Result) tools.Result {
	result.Content = r.Text(result.Content)
	result.Parts = slices.Clone(result.Parts)
	for i, part := range result.Parts {
		switch p := part.(type) {
		case llm.Text:
			p.Text = r.Text(p.Text)
			result.Parts[i] = p
		case llm.Media:
			p.URL, p.Name, p.MIME = r.Text(p.URL), r.Text(p.Name), r.Text(p.MIME)
			result.Parts[i] = p
		}
	}
	return result
}
