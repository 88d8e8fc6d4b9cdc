package webhook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/secrets"
)

// Hook is a webhook of the configuration file: a receiver, and the events that it gets.
type Hook struct {
	// Name identifies the hook: [a-z0-9][a-z0-9_-]{0,63}, unique in the file. Deliveries in
	// Temporal refer to it.
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
	// Events are the types of events to send; empty = all.
	Events []inbox.EventType `yaml:"events"`
	// Tenants are the tenants whose interrupts to send; "*" = all, empty = only auth.TenantDefault.
	Tenants []string `yaml:"tenants"`
	// Agents are the agents whose interrupts to send; empty = all.
	Agents []string `yaml:"agents"`
	// Secret is the name of the secret that signs messages: the environment variable
	// PERDURE_SECRET_<Secret>. Its value is base64 of 24 to 64 bytes, with or without the prefix
	// whsec_.
	Secret string `yaml:"secret"`
}

// Bounds of a file: its bytes, its webhooks, and the bytes of a URL.
const (
	maxFile  = 1 << 20
	maxHooks = 32
	maxURL   = 2 << 10
)

// Bounds of a secret, in bytes, as of Standard Webhooks.
const (
	minSecret = 24
	maxSecret = 64
)

var (
	hookName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)
)

// Load reads the webhooks of a YAML file and checks their secrets, which lookup returns by name.
// The error joins all mistakes, each with the file's name.
func Load(file string, lookup func(name string) string) ([]Hook, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %d bytes", file, maxFile)
	}
	hooks, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var problems []error
	if len(hooks) > maxHooks {
		problems = append(problems, fmt.Errorf("%s: has more than %d webhooks", file, maxHooks))
	}
	for i, h := range hooks {
		for _, err := range h.check(hooks[:i], lookup) {
			problems = append(problems, fmt.Errorf("%s: webhook %d (%.64q): %w", file, i+1, h.Name, err))
		}
	}
	return hooks, errors.Join(problems...)
}

// parse decodes a file. Unknown keys are errors; empty data has no webhooks.
func parse(data []byte) (hooks []Hook, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&hooks); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return hooks, nil
}

// check returns all mistakes of a hook. before are the hooks above it in the file, whose names it
// must not repeat.
func (h Hook) check(before []Hook, lookup func(string) string) (problems []error) {
	if !hookName.MatchString(h.Name) {
		problems = append(problems, errors.New("name must be a-z, 0-9, _ and -, at most 64 of them"))
	}
	if slices.ContainsFunc(before, func(other Hook) bool { return other.Name == h.Name }) {
		problems = append(problems, errors.New("name is already the name of another webhook"))
	}
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(h.URL) > maxURL:
		problems = append(problems, fmt.Errorf("url must be an https URL without a password, of at most %d bytes", maxURL))
	case u.Scheme == "http" && !auth.IsLoopback(u.Host):
		problems = append(problems, errors.New("url must begin with https: events have the arguments of calls; http is only for receivers on this machine"))
	}
	for _, e := range h.Events {
		if !slices.Contains(inbox.Types, e) {
			problems = append(problems, fmt.Errorf("events: %.64q is not one of %v", e, inbox.Types))
		}
	}
	if !secretName.MatchString(h.Secret) {
		return append(problems, errors.New("secret must be the name of a secret, in A-Z, 0-9 and _"))
	}
	if _, err := decodeSecret(lookup(h.Secret)); err != nil {
		problems = append(problems, fmt.Errorf("the secret %s%s %w", secrets.VariablePrefix, h.Secret, err))
	}
	return problems
}

// decodeSecret decodes the value of a secret. Its error is a predicate, and never contains the
// value.
func decodeSecret(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("is missing")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return nil, fmt.Errorf("must be base64 of %d to %d bytes", minSecret, maxSecret)
	}
	return raw, nil
}

// Wants reports whether to send an event about an interrupt of an agent in a tenant to this hook.
func (h Hook) Wants(event inbox.EventType, tenant, agent string) bool {
	if len(h.Tenants) == 0 && tenant != auth.TenantDefault {
		return false
	}
	if len(h.Tenants) > 0 && !slices.Contains(h.Tenants, tenant) && !slices.Contains(h.Tenants, "*") {
		return false
	}
	return (len(h.Events) == 0 || slices.Contains(h.Events, event)) && (len(h.Agents) == 0 || slices.Contains(h.Agents, agent))
}
