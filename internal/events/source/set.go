package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// Bounds of a file: its bytes, and its sources.
const (
	maxFile    = 1 << 20
	maxSources = 64
)

// secretPrefix begins the names of the environment variables that have secrets.
const secretPrefix = "PERDURE_SECRET_"

// Set has the sources of a file. It is not changed, and is safe for concurrent use.
type Set struct {
	sources []Source
	lookup  func(name string) string
}

// Open reads the sources of a YAML file; with an empty name, there are none. getenv reads the
// environment for secrets; it is called for each message and concurrently. nil = this process receives
// no webhooks, and the secrets are not checked. The error joins all mistakes, each with the name of the
// file.
func Open(file string, getenv func(name string) string) (*Set, error) {
	set := &Set{}
	if getenv != nil {
		set.lookup = func(name string) string { return getenv(secretPrefix + name) }
	}
	if file == "" {
		return set, nil
	}
	data, err := yamlfile.Read(file, maxFile)
	if err != nil {
		return nil, err
	}
	if set.sources, err = parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var problems []error
	if len(set.sources) > maxSources {
		problems = append(problems, fmt.Errorf("%s: has more than %d sources", file, maxSources))
	}
	for i := range set.sources {
		s := &set.sources[i]
		for _, err := range s.check(set.sources[:i], set.lookup) {
			problems = append(problems, fmt.Errorf("%s: source %d (%.64q): %w", file, i+1, s.Name, err))
		}
	}
	return set, errors.Join(problems...)
}

// parse decodes a file. Unknown keys are errors; empty data has no sources.
func parse(data []byte) (sources []Source, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&sources); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for i := range sources {
		if sources[i].Tenant == "" {
			sources[i].Tenant = auth.TenantDefault
		}
	}
	return sources, nil
}

// find returns the source with a name; nil = there is none. s may be nil.
func (s *Set) find(name string) *Source {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.sources, func(source Source) bool { return source.Name == name })
	if i < 0 {
		return nil
	}
	return &s.sources[i]
}
