package agui

import (
	"strconv"
	"strings"
)

const (
	// Version is the protocol version we declare on RUN_STARTED. It stays 1.0
	// while a stream has no 1.1 member, because a 1.0 client warns at 1.1.
	Version = "1.0"
	// VersionLatest is the newest version this package understands. A stream
	// with an encryptedValueType, the one addition of 1.1, must declare it.
	VersionLatest = "1.1"
)

// ParseVersion reads "MAJOR.MINOR". Versions compare by number, part by part;
// one that cannot be read counts as newer than ours.
func ParseVersion(s string) (major, minor int, ok bool) {
	first, second, found := strings.Cut(s, ".")
	if !found {
		return 0, 0, false
	}
	major, ok1 := versionPart(first)
	minor, ok2 := versionPart(second)
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	return major, minor, true
}

// versionPart is stricter than Atoi, which takes signs.
func versionPart(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// versionConcern says what is wrong with a producer's declared version, or ""
// when we understand all it may send. None declared means older than 1.0.
func versionConcern(declared string) string {
	if declared == "" {
		return ""
	}
	major, minor, ok := ParseVersion(declared)
	ourMajor, ourMinor, _ := ParseVersion(VersionLatest)
	switch {
	case !ok:
		return "cannot interpret protocol version " + strconv.Quote(declared)
	case major > ourMajor || major == ourMajor && minor > ourMinor:
		return "protocol version " + declared + " is newer than " + VersionLatest
	default:
		return ""
	}
}
