package secrets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Lookup returns the value of a secret; "" = there is none. It must be safe for concurrent use.
type Lookup func(name string) (value string)

// MissingError is the error of a secret that the worker does not have.
type MissingError struct {
	Name string
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("secret %s is missing: the worker has no PERDURE_SECRET_%s", e.Name, e.Name)
}

// Text is a parsed text with references to secrets. It is immutable.
type Text struct {
	literals []string // text around the references; one more than names
	names    []string // of the referenced secrets
}

// reference matches a reference to a secret.
var reference = regexp.MustCompile(`\$\{secret:([A-Z][A-Z0-9_]{0,127})\}`)

// Parse parses a text. A text with a malformed reference is an error, since it would otherwise be
// sent literally. Control characters are an error, because they could add a header.
func Parse(s string) (Text, error) {
	var t Text
	at := 0
	for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
		t.literals = append(t.literals, s[at:m[0]])
		t.names = append(t.names, s[m[2]:m[3]])
		at = m[1]
	}
	t.literals = append(t.literals, s[at:])
	for _, literal := range t.literals {
		if strings.Contains(literal, "${") {
			return Text{}, fmt.Errorf("only ${secret:NAME} may follow a $, with a NAME of A-Z, 0-9 and _")
		}
		if strings.ContainsFunc(literal, isControl) {
			return Text{}, fmt.Errorf("there must be no control characters")
		}
	}
	return t, nil
}

// isControl reports whether r is an ASCII control character.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// fill returns the text with its secrets, and appends their values to used.
func (t Text) fill(lookup Lookup, used *[]string) (string, error) {
	var b strings.Builder
	for i, name := range t.names {
		value := lookup(name)
		if value == "" {
			return "", &MissingError{Name: name}
		}
		// A line break in a secret could add a header.
		if strings.ContainsFunc(value, isControl) {
			return "", fmt.Errorf("secret %s has control characters", name)
		}
		*used = append(*used, value)
		b.WriteString(t.literals[i])
		b.WriteString(value)
	}
	b.WriteString(t.literals[len(t.literals)-1])
	return b.String(), nil
}

// Texts are texts by the name of their header or environment variable.
type Texts map[string]Text

// ParseAll parses texts. On an error, key is the name of the invalid text.
func ParseAll(texts map[string]string) (all Texts, key string, err error) {
	all = Texts{}
	for _, name := range sorted(texts) {
		if all[name], err = Parse(texts[name]); err != nil {
			return nil, name, err
		}
	}
	return all, "", nil
}

// Fill returns the texts with their secrets, and a Redactor for these secrets. It fails if a secret
// is missing.
func (t Texts) Fill(lookup Lookup) (map[string]string, Redactor, error) {
	filled := make(map[string]string, len(t))
	var used []string
	for _, name := range sorted(t) {
		value, err := t[name].fill(lookup, &used)
		if err != nil {
			return nil, Redactor{}, err
		}
		filled[name] = value
	}
	return filled, NewRedactor(used...), nil
}

// sorted returns the keys of m in order, so that errors are deterministic.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
