package httptool

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxURL is the maximum length of a URL with placeholders, in bytes.
const maxURL = 8 << 10

// urlTemplate is a URL with placeholders for arguments. Its pieces keep the escaping of the
// definition, so a filled URL differs only in the placeholders.
type urlTemplate struct {
	base  *url.URL // scheme and host
	path  []piece
	query []parameter
}

// piece is a literal in the escaping of the definition, or the name of an argument. Exactly one
// field is set.
type piece struct {
	literal, argument string
}

// parameter is a query parameter of the URL.
type parameter struct {
	name  string // in the escaping of the definition
	value []piece
}

// placeholder matches a placeholder such as {id}.
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]{0,127})\}`)

// parseURL parses and validates a URL with placeholders. The error is a *ConfigError.
func parseURL(text string) (*urlTemplate, error) {
	const key = "http.url"
	if len(text) > maxURL {
		return nil, configErrorf(key, "must be at most %d bytes", maxURL)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return nil, configErrorf(key, "must begin with https:// or http://")
	}
	if host := rest[:indexAny(rest, "/?#")]; strings.ContainsAny(host, "{}") {
		return nil, configErrorf(key, "must not have a {place} in its host")
	}
	// Placeholders become letters here; remaining braces are a mistake.
	withoutArguments := placeholder.ReplaceAllString(text, "x")
	u, err := url.Parse(withoutArguments)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, configErrorf(key, "is not a URL")
	case strings.ContainsAny(withoutArguments, "{}"):
		return nil, configErrorf(key, "has a brace that is not part of a {place}")
	case u.User != nil:
		return nil, configErrorf(key, "must not have a user or password; use a header with a secret")
	case strings.Contains(withoutArguments, "#"):
		return nil, configErrorf(key, "must not have a fragment: it would not be sent")
	}
	t := &urlTemplate{base: &url.URL{Scheme: scheme, Host: u.Host}}
	// A URL without a path has the path "/" on the wire.
	path, query, _ := strings.Cut(rest[indexAny(rest, "/?"):], "?")
	if t.path = parsePieces(path); path == "" {
		t.path = []piece{{literal: "/"}}
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.Contains(name, "{") {
			return nil, configErrorf(key, "must not have a {place} in the name of a query parameter")
		}
		if pair != "" {
			t.query = append(t.query, parameter{name, parsePieces(value)})
		}
	}
	return t, nil
}

// indexAny is strings.IndexAny, except that it returns len(s) for no match.
func indexAny(s, chars string) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

// parsePieces splits text into literals and placeholders.
func parsePieces(text string) []piece {
	var pieces []piece
	at := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		if m[0] > at {
			pieces = append(pieces, piece{literal: text[at:m[0]]})
		}
		pieces = append(pieces, piece{argument: text[m[2]:m[3]]})
		at = m[1]
	}
	if at < len(text) {
		pieces = append(pieces, piece{literal: text[at:]})
	}
	return pieces
}

// names returns the arguments that the URL uses, each once.
func (t *urlTemplate) names() []string {
	var names []string
	collect := func(pieces []piece) {
		for _, p := range pieces {
			if p.argument != "" && !slices.Contains(names, p.argument) {
				names = append(names, p.argument)
			}
		}
	}
	collect(t.path)
	for _, q := range t.query {
		collect(q.value)
	}
	return names
}

// fill returns the URL with the arguments in its placeholders. more are additional query
// parameters. Errors about arguments are for the model.
func (t *urlTemplate) fill(args arguments, more url.Values) (*url.URL, error) {
	path, err := t.fillPath(args)
	if err != nil {
		return nil, err
	}
	query, err := t.fillQuery(args, more)
	if err != nil {
		return nil, err
	}
	u := *t.base
	if u.Path, err = url.PathUnescape(path); err != nil {
		return nil, configErrorf("http.url", "has a path with invalid escapes")
	}
	// RawPath keeps the escaping: url.URL would not escape a slash in an argument.
	u.RawPath, u.RawQuery = path, query
	return &u, nil
}

// fillPath returns the escaped path. An argument is escaped as one segment.
func (t *urlTemplate) fillPath(args arguments) (string, error) {
	var b strings.Builder
	for _, p := range t.path {
		if p.argument == "" {
			b.WriteString(p.literal)
			continue
		}
		value, err := args.pathValue(p.argument)
		if err != nil {
			return "", err
		}
		b.WriteString(url.PathEscape(value))
	}
	// Adjacent placeholders can add up to "..".
	for segment := range strings.SplitSeq(b.String(), "/") {
		if segment == "." || segment == ".." {
			return "", argumentErrorf("the path would have a segment %q", segment)
		}
	}
	return b.String(), nil
}

// fillQuery returns the escaped query.
func (t *urlTemplate) fillQuery(args arguments, more url.Values) (string, error) {
	var pairs []string
	for _, q := range t.query {
		values, err := args.queryValues(q.value)
		if err != nil {
			return "", err
		}
		for _, v := range values {
			pairs = append(pairs, q.name+"="+v)
		}
	}
	if len(more) > 0 {
		pairs = append(pairs, more.Encode())
	}
	return strings.Join(pairs, "&"), nil
}

// queryValues returns the escaped values of a query parameter: none if an argument is missing,
// several if the parameter consists of one argument that is a list.
func (a arguments) queryValues(pieces []piece) ([]string, error) {
	if len(pieces) == 1 && pieces[0].argument != "" {
		values, err := a.values(pieces[0].argument)
		for i := range values {
			values[i] = url.QueryEscape(values[i])
		}
		return values, err
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.argument == "" {
			b.WriteString(p.literal)
			continue
		}
		values, err := a.values(p.argument)
		if err != nil || len(values) == 0 {
			return nil, err
		}
		if len(values) > 1 {
			return nil, argumentErrorf("/%s: must not be a list, because it is part of a value in the URL's query", p.argument)
		}
		b.WriteString(url.QueryEscape(values[0]))
	}
	return []string{b.String()}, nil
}
