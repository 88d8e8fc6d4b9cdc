// Package version describes the build of a program, as the Go toolchain has recorded it in the
// binary.
package version

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// module is Perdure's module path.
const module = "github.com/perdure/perdure"

// Info describes a build. Fields that the toolchain did not record are empty.
type Info struct {
	// Version is the version of Perdure's module, such as v1.2.3, or "(devel)" for a build of a
	// checkout without a tag.
	Version string `json:"version"`
	// Revision is the commit of the build, and Time its commit time (RFC 3339). Both are empty in a
	// program of another module that uses Perdure.
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	// Modified reports that the checkout had uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of the toolchain and the platform.
	Go string `json:"go"`
}

// Read returns the description of the running program.
func Read() Info {
	build, locked := debug.ReadBuildInfo()
	if !locked {
		build = &debug.BuildInfo{}
	}
	return of(build)
}

// of returns the description for a build. In a program of another module, Perdure is one of the
// dependencies.
func of(build *debug.BuildInfo) Info {
	info := Info{Go: cmp.Or(build.GoVersion, runtime.Version()) + " " + runtime.GOOS + "/" + runtime.GOARCH}
	if build.Main.Path != module {
		for _, dependency := range build.Deps {
			if dependency.Path == module {
				info.Version = dependency.Version
			}
		}
		info.Version = cmp.Or(info.Version, "unknown")
		return info
	}
	info.Version = cmp.Or(build.Main.Version, "(devel)")
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.time":
			info.Time = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// BinaryID returns an identifier of the running binary for Temporal, which records it with each
// workflow task. It differs between builds: it has the version and the revision, or, without a
// clean revision, the size and the modification time of the file. The SDK's own identifier is an
// MD5 sum of the whole file, which takes a large part of a process's start.
func BinaryID() string {
	info := Read()
	if info.Revision != "" && !info.Modified {
		return info.Version + " " + info.Revision
	}
	path, err := os.Executable()
	if err != nil {
		return info.Version
	}
	file, err := os.Stat(path)
	if err != nil {
		return info.Version
	}
	return fmt.Sprintf("%s %d %s", info.Version, file.Size(), file.ModTime().UTC().Format(time.RFC3339Nano))
}

// Text returns the description of a program as text, one line for each known field.
func (i Info) Text(program string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", program, i.Version)
	if i.Revision != "" {
		fmt.Fprintf(&b, "revision %s", i.Revision)
		if i.Modified {
			b.WriteString(", modified")
		}
		b.WriteByte('\n')
	}
	if i.Time != "" {
		fmt.Fprintf(&b, "time     %s\n", i.Time)
	}
	fmt.Fprintf(&b, "go       %s\n", i.Go)
	return b.String()
}
