package secrets

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// VariablePrefix begins the names of the environment variables that have secrets: the secret SHOP_TOKEN is in
// PERDURE_SECRET_SHOP_TOKEN.
const VariablePrefix = "PERDURE_SECRET_"

// Lookup returns the value of a secret; "" = there is none. It must be safe for concurrent use.
type Lookup func(name string) (value string)

// MissingError is the error of a secret that the worker does not have.
type MissingError struct {
	Name string
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("secret %s is missing: the worker has no %s%s", e.Name, VariablePrefix, e.Name)
}

// errNoCaller is the error of a text that needs a caller, outside of a call.
var errNoCaller = errors.New("the text has a reference to the caller, and there is no call")

// MissingTenantError is the error of a secret that the worker does not have for a tenant.
type MissingTenantError struct {
	Name string
}

// Error implements error.
func (e *MissingTenantError) Error() string {
	return fmt.Sprintf("secret %s is missing for the tenant: the worker has no %s%s.<tenant>", e.Name, VariablePrefix, e.Name)
}

// Text is a parsed text with references. It is immutable.
type Text struct {
	literals   []string // text around the references; one more than references
	references []reference
}

// reference is a reference in a text. Exactly one field is set.
type reference struct {
	secret       string // name of a secret of all tenants
	tenantSecret string // name of a secret that each tenant has
	caller       string // member of the caller
}

// referencePattern matches a reference. A brace that begins none is literal.
var referencePattern = regexp.MustCompile(`\$\{(secret|tenantSecret):([A-Z][A-Z0-9_]{0,127})\}|\{caller\.([A-Za-z0-9_.-]*)\}`)

// Parse parses a text. A text with a malformed reference is an error, since it would otherwise be
// sent literally. Control characters are an error, because they could add a header.
func Parse(s string) (Text, error) {
	var t Text
	at := 0
	for _, m := range referencePattern.FindAllStringSubmatchIndex(s, -1) {
		var r reference
		switch {
		case m[2] < 0:
			r.caller = s[m[6]:m[7]]
			if !slices.Contains(CallerMembers, r.caller) {
				return Text{}, fmt.Errorf("{caller.%s} is unknown: there are {caller.%s}", r.caller, strings.Join(CallerMembers, "} and {caller."))
			}
		case s[m[2]:m[3]] == "secret":
			r.secret = s[m[4]:m[5]]
		default:
			r.tenantSecret = s[m[4]:m[5]]
		}
		t.literals, t.references = append(t.literals, s[at:m[0]]), append(t.references, r)
		at = m[1]
	}
	t.literals = append(t.literals, s[at:])
	for i, literal := range t.literals {
		isDollar := i < len(t.references) && t.references[i].caller != "" && strings.HasSuffix(literal, "$")
		if isDollar || strings.Contains(literal, "${") {
			return Text{}, fmt.Errorf("only ${secret:NAME} or ${tenantSecret:NAME} may follow a $, with a NAME of A-Z, 0-9 and _")
		}
		if strings.ContainsFunc(literal, isControl) {
			return Text{}, fmt.Errorf("there must be no control characters")
		}
	}
	return t, nil
}

// isControl reports whether r is an ASCII control character.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// fill returns the text with its references replaced, and appends the values of secrets to used.
// caller is nil for a text that belongs to no call.
func (t Text) fill(lookup Lookup, caller *Caller, used *[]string) (string, error) {
	var b strings.Builder
	for i, r := range t.references {
		value, err := r.value(lookup, caller)
		if err != nil {
			return "", err
		}
		if r.caller == "" {
			*used = append(*used, value)
		}
		b.WriteString(t.literals[i])
		b.WriteString(value)
	}
	b.WriteString(t.literals[len(t.literals)-1])
	return b.String(), nil
}

// value returns the value of a reference.
func (r reference) value(lookup Lookup, caller *Caller) (string, error) {
	name := r.secret
	var value string
	switch {
	case r.secret != "":
		if value = lookup(r.secret); value == "" {
			return "", &MissingError{Name: r.secret}
		}
	case caller == nil || caller.Tenant == "":
		return "", errNoCaller
	case r.tenantSecret != "":
		name = r.tenantSecret
		// Another tenant's value, or one for all, would act with rights that this tenant lacks.
		if value = lookup(name + "." + TenantSuffix(caller.Tenant)); value == "" {
			return "", &MissingTenantError{Name: name}
		}
	default:
		return caller.headerValue(r.caller)
	}
	// A line break in a secret could add a header.
	if strings.ContainsFunc(value, isControl) {
		return "", fmt.Errorf("secret %s has control characters", name)
	}
	return value, nil
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
// is missing, and if a text needs a caller.
func (t Texts) Fill(lookup Lookup) (map[string]string, Redactor, error) { return t.fill(lookup, nil) }

// FillFor is like Fill, for a call: it replaces members of the caller, and secrets of its tenant,
// too. It fails if a value is not valid in a header.
func (t Texts) FillFor(caller Caller, lookup Lookup) (map[string]string, Redactor, error) {
	return t.fill(lookup, &caller)
}

// fill is Fill, or FillFor if there is a caller.
func (t Texts) fill(lookup Lookup, caller *Caller) (map[string]string, Redactor, error) {
	filled := make(map[string]string, len(t))
	var used []string
	for _, name := range sorted(t) {
		value, err := t[name].fill(lookup, caller, &used)
		if err != nil {
			return nil, Redactor{}, err
		}
		filled[name] = value
	}
	return filled, NewRedactor(used...), nil
}

// CheckSecrets reports a secret of all tenants that is missing or cannot be used.
func (t Texts) CheckSecrets(lookup Lookup) error {
	for _, name := range sorted(t) {
		for _, r := range t[name].references {
			if r.secret == "" {
				continue
			}
			if _, err := r.value(lookup, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// NeedsCaller returns the name of a text that needs the caller of a call; "" = none does.
func (t Texts) NeedsCaller() string {
	for _, name := range sorted(t) {
		if slices.ContainsFunc(t[name].references, func(r reference) bool { return r.secret == "" }) {
			return name
		}
	}
	return ""
}

// SharedSecret returns the name of a secret of all tenants to which a text refers; "" = none does.
func (t Texts) SharedSecret() string {
	for _, name := range sorted(t) {
		for _, r := range t[name].references {
			if r.secret != "" {
				return r.secret
			}
		}
	}
	return ""
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
