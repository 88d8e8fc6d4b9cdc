package source

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/perdure/perdure/internal/auth"
)

// Source is a source of the configuration file.
type Source struct {
	// Name identifies the source: [a-z0-9][a-z0-9_-]{0,63}, unique in the file. It begins the types of
	// the source's events, except those of CloudEvents, which keep theirs.
	Name string `yaml:"name"`
	// Tenant is the tenant whose runs get the events. Open sets auth.TenantDefault if it is empty.
	Tenant string `yaml:"tenant"`
	// Webhook is how the source sends events by HTTP.
	Webhook *Webhook `yaml:"webhook"`
	// NATS is where the source publishes events in NATS. A source has this or Webhook.
	NATS *Subject `yaml:"nats"`
}

var sourceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// check returns all mistakes of a source. before are the sources above it in the file, whose names it
// must not repeat. lookup nil = secrets are not checked.
func (s *Source) check(before []Source, lookup func(string) string) (problems []error) {
	if !sourceName.MatchString(s.Name) {
		problems = append(problems, errors.New("name must be a-z, 0-9, _ and -, at most 64 of them, and begin with a letter or a digit"))
	}
	if slices.ContainsFunc(before, func(other Source) bool { return other.Name == s.Name }) {
		problems = append(problems, errors.New("name is already the name of another source"))
	}
	if err := (auth.Principal{Tenant: s.Tenant}).Check(); err != nil {
		problems = append(problems, fmt.Errorf("tenant is not valid: %w", err))
	}
	switch {
	case (s.Webhook == nil) == (s.NATS == nil):
		return append(problems, errors.New("needs webhook or nats, and not both"))
	case s.NATS != nil:
		return append(problems, s.NATS.check()...)
	}
	return append(problems, s.Webhook.check(lookup)...)
}
