package source

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/events"
)

// Subject is where a source publishes messages in NATS.
type Subject struct {
	// Subject is the subject of the messages, which may have wildcards after its first token.
	Subject string `yaml:"subject"`
	// Stream is the JetStream stream that has the messages. "" = they are in no stream.
	Stream string `yaml:"stream"`
}

// maxSubject bounds a subject, in bytes, so that it fits into the source of an event.
const maxSubject = events.MaxAttribute - len(subjectSource)

var streamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// check returns all mistakes of a subject. A source must not read what Perdure writes: its events would
// become events.
func (s *Subject) check() (problems []error) {
	tokens := strings.Split(s.Subject, ".")
	first, last := strings.ToLower(tokens[0]), len(tokens)-1
	isMalformed := strings.ContainsAny(s.Subject, " \t\r\n") || len(s.Subject) > maxSubject || slices.Contains(tokens, "")
	switch {
	case isMalformed || slices.Contains(tokens[:last], ">"):
		problems = append(problems, fmt.Errorf("nats.subject must be a subject of NATS, of at most %d bytes", maxSubject))
	case strings.ContainsAny(first, "*>"):
		problems = append(problems, errors.New("nats.subject must begin with a name, not a wildcard"))
	case strings.HasPrefix(first, "$") || strings.HasPrefix(first, "_") || strings.HasPrefix(first, "perdure"):
		problems = append(problems, errors.New("nats.subject must not be one of Perdure or of NATS itself, which begin with perdure, $ or _"))
	}
	if s.Stream != "" && !streamName.MatchString(s.Stream) {
		problems = append(problems, errors.New("nats.stream must be the name of a stream, in letters, digits, _ and -"))
	}
	return problems
}
