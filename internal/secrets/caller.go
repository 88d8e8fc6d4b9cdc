package secrets

import (
	"fmt"
	"strings"
)

// Caller is for whom a call is made. Texts refer to its members as {caller.tenant} and
// {caller.subject}.
type Caller struct {
	Tenant  string
	Subject string // of the requester; "" = an anonymous caller
}

// CallerMembers are the members to which texts may refer.
var CallerMembers = []string{"tenant", "subject"}

// AnonymousError is the error of a call that needs the subject of an anonymous requester.
type AnonymousError struct{}

// Error implements error.
func (AnonymousError) Error() string {
	return "the requester of the run is anonymous, and has no {caller.subject}"
}

// Member returns the value of a member. The error is an AnonymousError for a subject that is
// missing, and otherwise says that there is no run.
func (c Caller) Member(name string) (string, error) {
	switch {
	case c.Tenant == "":
		return "", errNoCaller
	case name == "tenant":
		return c.Tenant, nil
	case c.Subject == "":
		return "", AnonymousError{}
	}
	return c.Subject, nil
}

// delimiters separate the parts of a header's value (RFC 9110, section 5.6): a value with one of them
// could add a part.
const delimiters = `,;"\`

// headerValue returns the value of a member for a header. A value that a header cannot have as it is
// is an error: an escaped or shortened one could be the name of another caller.
func (c Caller) headerValue(name string) (string, error) {
	value, err := c.Member(name)
	if err != nil {
		return "", err
	}
	invalid := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(delimiters, r) }
	if strings.ContainsFunc(value, invalid) {
		return "", fmt.Errorf("{caller.%s} is not valid in a header: it must be ASCII without %s. Use the assertion, which has all characters", name, delimiters)
	}
	return value, nil
}

// TenantSuffix returns a tenant for the name of a secret. It keeps a-z, 0-9 and -, and replaces each
// other byte by _ and its two hexadecimal digits. So two tenants have different suffixes, also in
// file systems that ignore case.
func TenantSuffix(tenant string) string {
	var b strings.Builder
	for _, c := range []byte(tenant) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
