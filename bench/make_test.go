package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBaseOfTheCommandLineComparesBuilds checks that make bench compares two builds only if it is told
// to: the Makefile has a default for BASE, which is for make check.
func TestBaseOfTheCommandLineComparesBuilds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args    []string
		compare bool
	}{
		{nil, false},
		{[]string{"ARGS=-quick"}, false},
		{[]string{"BASE="}, false},
		{[]string{"BASE=HEAD~1"}, true},
		{[]string{"BASE=HEAD~1", "ARGS=-quick"}, true},
	} {
		cmd := exec.Command("make", append([]string{"-C", "..", "-n", "bench"}, test.args...)...)
		// This test may run in "make unit BASE=…".
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "BASE=") })
		recipe, err := cmd.Output()
		if err != nil {
			t.Fatalf("make %v: %v", test.args, err)
		}
		if got := strings.Contains(string(recipe), "-base HEAD~1"); got != test.compare || strings.Contains(string(recipe), "-base HEAD ") {
			t.Errorf("make bench %v compares: %v, want %v:\n%s", test.args, got, test.compare, recipe)
		}
	}
}
