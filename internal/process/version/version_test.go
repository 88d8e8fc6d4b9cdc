package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	ours := debug.Module{Path: module, Version: "v1.2.3"}
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "5c1f"}, {Key: "vcs.time", Value: "2026-11-21T09:30:00Z"}, {Key: "vcs.modified", Value: "true"}}
	for name, tt := range map[string]struct {
		build debug.BuildInfo
		want  []string
	}{
		"a checkout":                  {debug.BuildInfo{GoVersion: "go1.26.8", Main: ours, Settings: settings}, []string{"api v1.2.3\n", "revision 5c1f, modified\n", "time     2026-11-21T09:30:00Z\n", "go       go1.26.8 "}},
		"an archive":                  {debug.BuildInfo{Main: debug.Module{Path: module}}, []string{"api (devel)\n", "go       go1."}},
		"a program of another module": {debug.BuildInfo{Main: debug.Module{Path: "shop.example/x", Version: "v9.9.9"}, Deps: []*debug.Module{&ours}, Settings: settings}, []string{"api v1.2.3\ngo "}},
		"nothing recorded":            {debug.BuildInfo{}, []string{"api unknown\ngo "}},
	} {
		text := of(&tt.build).Text("api")
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q in %q", name, want, text)
			}
		}
	}
}

func TestBinaryIDIsStable(t *testing.T) {
	t.Parallel()
	id := BinaryID()
	if id == "" || id != BinaryID() {
		t.Errorf("BinaryID() = %q, then %q; want the same text", id, BinaryID())
	}
}
