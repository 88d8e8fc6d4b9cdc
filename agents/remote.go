package agents

import (
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxProps bounds Forward.Props.
const maxProps = 64

// Remote is the endpoint of an agent on another server that speaks AG-UI over HTTP.
type Remote struct {
	// URL is the address, with the scheme https or http. It must not have a user or a fragment.
	URL string `json:"url" yaml:"url"`

	// Headers are sent with each request; ${secret:NAME} in a value is replaced. At most 32.
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"`

	// Protocol is the generation of AG-UI in which requests are written: auto (the default), 1.0 or
	// 0.x.
	Protocol string `json:"protocol,omitempty" yaml:"protocol,omitempty"`

	// Retry is what happens to a run whose stream has broken: never (the default) repeats nothing,
	// restart makes the run again, resume continues it with Last-Event-ID.
	Retry string `json:"retry,omitempty" yaml:"retry,omitempty"`

	// Forward is what the remote receives of the thread, besides its messages.
	Forward Forward `json:"forward,omitzero" yaml:"forward,omitempty"`

	// Interrupts is who answers the remote's interrupts, and until when. It has neither Tools nor When.
	// OnExpiry is reject (the default), fail or escalate. The zero value lets callers answer that may
	// decide in the thread.
	Interrupts Approval `json:"interrupts,omitzero" yaml:"interrupts,omitempty"`
}

// Forward is what a remote agent receives of the client's input. The zero value is the default.
type Forward struct {
	// State is whether the remote receives the state; nil = true.
	State *bool `json:"state,omitempty" yaml:"state,omitempty"`
	// Tools are the tools that the remote may call: client (the default) for those of the client, or
	// none.
	Tools string `json:"tools,omitempty" yaml:"tools,omitempty"`
	// Context is whether the remote receives the context; nil = true.
	Context *bool `json:"context,omitempty" yaml:"context,omitempty"`
	// Props are the members of forwardedProps that the remote receives. At most 64, each once.
	Props []string `json:"props,omitempty" yaml:"props,omitempty"`
}

// Values of Remote.Retry.
const (
	RetryNever   = "never"   // the run fails
	RetryRestart = "restart" // the run is made again
	RetryResume  = "resume"  // the run is continued after the last event
)

const (
	protocolAuto = "auto"
	toolsClient  = "client"
	toolsNone    = "none"
)

var (
	protocols    = []string{protocolAuto, "1.0", "0.x"}
	retries      = []string{RetryNever, RetryRestart, RetryResume}
	forwardTools = []string{toolsClient, toolsNone}

	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$") // a token of RFC 9110
	// ownHeaders are the headers that Perdure sets, in lower case.
	ownHeaders = []string{"accept", "accept-encoding", "content-type", "content-length", "host", "last-event-id", "user-agent"}
)

// HasState reports whether the remote receives the state.
func (f Forward) HasState() bool { return f.State == nil || *f.State }

// HasContext reports whether the remote receives the context.
func (f Forward) HasContext() bool { return f.Context == nil || *f.Context }

// HasTools reports whether the remote receives the tools of the client.
func (f Forward) HasTools() bool { return f.Tools != toolsNone }

// remote reads the key remote.
func (r *reader) remote(into **Remote) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		*into = &Remote{}
		r.mapping("remote.", node, []field{
			{"url", text(&(*into).URL)},
			{"headers", r.table("remote.headers", &(*into).Headers, maxHeaders)},
			{"protocol", oneOf(&(*into).Protocol, protocols...)},
			{"retry", oneOf(&(*into).Retry, retries...)},
			{"forward", r.forward(&(*into).Forward)},
			{"interrupts", r.keyed(remoteInterrupts+".", func() []field { return r.decision(remoteInterrupts, &(*into).Interrupts) })},
		})
		return ""
	}
}

// forward reads the key remote.forward.
func (r *reader) forward(into *Forward) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("remote.forward.", node, []field{
			{"state", optionalFlag(&into.State)},
			{"tools", oneOf(&into.Tools, forwardTools...)},
			{"context", optionalFlag(&into.Context)},
			{"props", r.list("remote.forward.props", &into.Props, maxProps)},
		})
		return ""
	}
}

// optionalFlag reads a boolean whose default is not false.
func optionalFlag(into **bool) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var b bool
		if reason := flag(&b)(node); reason != "" {
			return reason
		}
		*into = &b
		return ""
	}
}

// withoutDefaults returns the remote without the fields that have their default.
func (r *Remote) withoutDefaults() *Remote {
	if r == nil {
		return nil
	}
	plain := *r
	if plain.Protocol == protocolAuto {
		plain.Protocol = ""
	}
	if plain.Retry == RetryNever {
		plain.Retry = ""
	}
	if plain.Interrupts.OnExpiry == OnExpiryReject {
		plain.Interrupts.OnExpiry = ""
	}
	f := &plain.Forward
	if f.State != nil && *f.State {
		f.State = nil
	}
	if f.Context != nil && *f.Context {
		f.Context = nil
	}
	if f.Tools == toolsClient {
		f.Tools = ""
	}
	return &plain
}

const remoteInterrupts = "remote.interrupts"

// HasRule reports whether the remote's interrupts have a rule about who answers them, or until when.
func (r *Remote) HasRule() bool { return !reflect.ValueOf(r.Interrupts).IsZero() }

// ruleMistakes returns the mistakes of the rule about interrupts.
func (r *Remote) ruleMistakes() []mistake {
	rule := r.Interrupts
	found := rule.decisionMistakes(remoteInterrupts)
	if len(rule.Tools) > 0 || rule.When != "" {
		found = append(found, newMistake(remoteInterrupts, "must have neither tools nor when"))
	}
	if rule.OnExpiry == OnExpirySkip {
		found = append(found, newMistake(remoteInterrupts+".onExpiry", "%q must be reject, fail or escalate", rule.OnExpiry))
	}
	return found
}

// mistakes returns the mistakes of the endpoint.
func (r *Remote) mistakes() []mistake {
	var found []mistake
	u, err := url.Parse(r.URL)
	switch {
	case r.URL == "":
		found = append(found, newMistake("remote.url", "must be the address of the agent, such as https://agents.example.com/analyst"))
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		found = append(found, newMistake("remote.url", "must begin with https:// or http:// and have a host"))
	case u.User != nil:
		found = append(found, newMistake("remote.url", "must not have a user or password; use a header with a secret"))
	case u.Fragment != "":
		found = append(found, newMistake("remote.url", "must not have a fragment: it would not be sent"))
	}
	if len(r.Headers) > maxHeaders {
		found = append(found, newMistake("remote.headers", "must be at most %d, not %d", maxHeaders, len(r.Headers)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		switch {
		case !headerName.MatchString(name):
			found = append(found, newMistake("remote.headers", "has the name %.80q, which is not valid in HTTP", name))
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			found = append(found, newMistake("remote.headers", "must not have %s, which Perdure sets", name))
		}
	}
	for _, choice := range []struct {
		key, value string
		of         []string
	}{
		{"remote.protocol", r.Protocol, protocols}, {"remote.retry", r.Retry, retries}, {"remote.forward.tools", r.Forward.Tools, forwardTools},
	} {
		if choice.value != "" && !slices.Contains(choice.of, choice.value) {
			found = append(found, newMistake(choice.key, "must be one of %s, not %.80q", strings.Join(choice.of, ", "), choice.value))
		}
	}
	if len(r.Forward.Props) > maxProps {
		found = append(found, newMistake("remote.forward.props", "must be at most %d, not %d", maxProps, len(r.Forward.Props)))
	}
	found = append(found, r.ruleMistakes()...)
	for i, name := range r.Forward.Props {
		if name == "" || name == "command" || name == "perdure" || slices.Contains(r.Forward.Props[:i], name) {
			found = append(found, newMistake("remote.forward.props", "has %.80q, which must be a name, appear once, and be neither command nor perdure", name))
		}
	}
	return found
}
