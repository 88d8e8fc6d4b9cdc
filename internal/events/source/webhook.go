package source

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Webhook is how a source sends events by HTTP.
type Webhook struct {
	// Scheme is how requests are signed: standard, github, stripe or slack.
	Scheme string `yaml:"scheme"`
	// Secret is the name of the secret that verifies signatures: the environment variable
	// PERDURE_SECRET_<Secret>. It may have two values during a rotation, separated by white space.
	Secret string `yaml:"secret"`
}

var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// check returns all mistakes of a webhook. lookup nil = the secret is not checked.
func (w *Webhook) check(lookup func(string) string) (problems []error) {
	scheme, ok := schemes[w.Scheme]
	if !ok {
		problems = append(problems, fmt.Errorf("webhook.scheme must be standard, github, stripe or slack, not %.64q", w.Scheme))
	}
	if !secretName.MatchString(w.Secret) {
		return append(problems, errors.New("webhook.secret must be the name of a secret, in A-Z, 0-9 and _"))
	}
	if !ok || lookup == nil {
		return problems
	}
	keys := strings.Fields(lookup(w.Secret))
	if len(keys) == 0 {
		return append(problems, fmt.Errorf("the secret %s%s is missing, or its file cannot be read", secretPrefix, w.Secret))
	}
	for _, key := range keys {
		if err := scheme.checkKey(key); err != nil {
			problems = append(problems, fmt.Errorf("the secret %s%s %w", secretPrefix, w.Secret, err))
		}
	}
	return problems
}
