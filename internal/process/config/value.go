package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// This file has the parsers of values. The error of a parser describes a valid value; Load adds the
// name of the variable.

// parser parses the text of one kind of value. Its error describes a valid value.
type parser[T any] func(string) (T, error)

// value is a pflag.Value for the environment and for flags. It keeps the text, because libraries
// read some variables as text.
type value[T any] struct {
	target *T
	parse  parser[T]
	raw    string
}

// bind returns a value that stores what it parses in *target.
func bind[T any](target *T, parse parser[T]) pflag.Value {
	return &value[T]{target: target, parse: parse}
}

// Set implements pflag.Value. An invalid text changes nothing.
func (v *value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err != nil {
		return err
	}
	*v.target, v.raw = parsed, s
	return nil
}

// String implements pflag.Value: it returns the last text that Set has accepted.
func (v *value[T]) String() string { return v.raw }

// Type implements pflag.Value: the placeholder of the value in help.
func (v *value[T]) Type() string { return "value" }

// privateKeys checks the private keys of assertions.
func privateKeys(s string) (string, error) { return s, assertion.CheckKeys(s) }

// encryptionKeys checks the URLs of the operator's keys.
func encryptionKeys(s string) (string, error) {
	_, err := encryption.ParseURLs(s)
	return s, err
}

// text accepts every text.
func text(s string) (string, error) { return s, nil }

// truth parses a boolean. It accepts only what Temporal's envconfig accepts, which ignores other
// values without an error.
func truth(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is not true or false", s)
}

// upTo parses a whole number from 1 to most.
func upTo(limit int) parser[int] {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > limit {
			return 0, fmt.Errorf("%q is not a whole number from 1 to %d", s, limit)
		}
		return n, nil
	}
}

// positiveCount parses a whole number of at least 1.
func positiveCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a whole number above zero", s)
	}
	return n, nil
}

// money parses an amount above zero.
func money(s string) (agents.Money, error) {
	m, err := agents.ParseMoney(s)
	if err != nil || m == 0 {
		return 0, fmt.Errorf("%q is not an amount above zero, such as 2 or 0.25", s)
	}
	return m, nil
}

// byteCount parses a size in bytes with an optional unit. 0 is valid.
func byteCount(s string) (int64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a number of bytes, such as 50GiB", s)
	}
	return int64(n), nil
}

// positiveDuration parses a Go duration above zero.
func positiveDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration above zero, such as 90s", s)
	}
	return d, nil
}

// Bounds of the times of a session.
const (
	minSessionTime = time.Second
	maxSessionTime = 30 * 24 * time.Hour
)

// sessionTime parses a duration within the bounds of a session.
func sessionTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < minSessionTime || d > maxSessionTime {
		return 0, fmt.Errorf("%q is not a duration from %s to %s, such as 8h", s, minSessionTime, maxSessionTime)
	}
	return d, nil
}

// hostPort checks an address of the form host:port with a numeric port. The host may be empty.
func hostPort(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("%q is not host:port", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no port from 0 to 65535", s)
	}
	return s, nil
}

// level parses a log level.
func level(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("%q is not debug, info, warn or error", s)
	}
	return l, nil
}

// oneOf accepts exactly the choices.
func oneOf(choices ...string) parser[string] {
	return func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("%q is not %s", s, strings.Join(choices, " or "))
		}
		return s, nil
	}
}

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// subjectToken accepts a name that is valid in NATS subjects and in names of buckets.
func subjectToken(s string) (string, error) {
	if !tokenPattern.MatchString(s) {
		return "", fmt.Errorf("%q is not 1 to 64 letters, digits, - and _", s)
	}
	return s, nil
}

var queuePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,31}$`)

// queueList parses a list of task queues, separated by commas. The result is sorted and has no
// duplicates.
func queueList(s string) ([]string, error) {
	list := strings.Split(s, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); !queuePattern.MatchString(list[i]) {
			return nil, fmt.Errorf("%q is not 1 to 32 letters, digits, ., _ and -, a letter or digit first", list[i])
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// originList parses a list of origins for CORS, separated by commas, or "*" alone.
func originList(s string) ([]string, error) {
	list := strings.Split(s, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		if list[i] == "*" && len(list) == 1 {
			break
		}
		if err := checkOrigin(list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// checkOrigin refuses a value that no browser sends in the header Origin: it would never match.
func checkOrigin(s string) error {
	if strings.Count(s, "*") > 1 {
		return fmt.Errorf("%q has more than one *", s)
	}
	if s == "*" {
		return errors.New("* allows every origin and must be the only entry")
	}
	// The port may be the wildcard, which package url does not accept.
	u, err := url.Parse(strings.Replace(s, ":*", "", 1))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("%q is not an origin, such as https://app.example", s)
	}
	return nil
}

// minKey is the minimum length of a signing key, in bytes.
const minKey = 32

// secretKey parses a signing key. Its error does not contain the key.
func secretKey(s string) ([]byte, error) {
	if len(s) < minKey {
		return nil, fmt.Errorf("must have at least %d bytes", minKey)
	}
	return []byte(s), nil
}

// baseURL parses a URL to which paths are appended. The result has no slash at its end.
func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("%q is not an http or https URL, such as https://agents.example", s)
	}
	u.Host = strings.ToLower(u.Host) // origins of browsers have lower case letters; url.Parse has changed the scheme
	return strings.TrimRight(u.String(), "/"), nil
}

// bucketSchemes are the schemes of the URLs of buckets.
var bucketSchemes = []string{"s3", "gs", "azblob", "file"}

// blobURL parses the URL of a bucket.
func blobURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(bucketSchemes, u.Scheme) || u.Host+u.Path == "" {
		return "", fmt.Errorf("%q is not the URL of a bucket, such as s3://files?region=eu-central-1, gs://files or azblob://files", s)
	}
	return s, nil
}

// urlTemplate parses a URL in which names in braces are replaced later.
func urlTemplate(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(u.Host, "{}") {
		return "", fmt.Errorf("%q is not an http or https URL, such as https://traces.example/search?run={runId}", s)
	}
	return s, nil
}
