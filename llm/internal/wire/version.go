package wire

import (
	"regexp"
	"strconv"
)

// Version is the version in the name of a model, such as 4.5. The zero value is an unknown version.
type Version struct{ Major, Minor int }

// VersionOf returns the version in a name. The first group of pattern is the major version, the
// second the minor one, which may be missing. known is false if the name does not match.
func VersionOf(name string, pattern *regexp.Regexp) (v Version, known bool) {
	found := pattern.FindStringSubmatch(name)
	if found == nil {
		return Version{}, false
	}
	v.Major, _ = strconv.Atoi(found[1])
	v.Minor, _ = strconv.Atoi(found[2]) // 0 if the name has no minor version
	return v, true
}

// Since reports whether the version is at least major.minor.
func (v Version) Since(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}
