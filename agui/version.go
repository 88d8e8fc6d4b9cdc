package agui

import (
	"strconv"
	"strings"
)

const (
	// Version is the protocol version that Perdure declares in RUN_STARTED. It is 1.0 for a stream
	// without members of 1.1, because a 1.0 client warns about 1.1.
	Version = "1.0"
	// VersionLatest is the latest version that this package understands. A stream with an
	// encryptedValueType, the only addition of 1.1, must declare it.
	VersionLatest = "1.1"
)

// ParseVersion parses "MAJOR.MINOR". Versions are compared numerically, part by part. ok is false
// if s is no version; such a version counts as newer than VersionLatest.
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

// versionPart parses a part of a version. Unlike strconv.Atoi, it accepts no sign.
func versionPart(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// versionConcern returns a warning about a producer's declared version, or "" if this package
// understands everything that the version allows. An empty version means a version before 1.0.
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
