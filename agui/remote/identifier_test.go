package remote

import (
	"regexp"
	"strings"
	"testing"
)

func TestThreadID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"a", "b", "fork"}, {"", "", ""}} {
		id := ThreadID(c[0], c[1], c[2])
		if !regexp.MustCompile(`^70657264-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) || seen[id] {
			t.Errorf("ThreadID(%q) = %s, want a UUID of its own", c, id)
		}
		seen[id] = true
		if again := ThreadID(c[0], c[1], c[2]); again != id {
			t.Errorf("ThreadID(%q) = %s and %s, want the same", c, id, again)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"m1", "", "a:b", "r::c", NewID("x", "r", "m")} {
		own := NewID("analyst", "run:1", id)
		if !IsNewID(own) {
			t.Errorf("IsNewID(%q) = false", own)
		}
		if id != "" && OriginalID("analyst", own) != id {
			t.Errorf("OriginalID(%q) = %q, want %q", own, OriginalID("analyst", own), id)
		}
		if own == NewID("analyst", "run:2", id) || own == NewID("other", "run:1", id) {
			t.Errorf("%q is not unique over runs and agents", own)
		}
		if OriginalID("other", own) != own {
			t.Errorf("OriginalID of another agent = %q, want it unchanged", OriginalID("other", own))
		}
	}
	for _, id := range []string{strings.Repeat("m", 97), "a b", "ä", "a\n"} {
		own := NewID("analyst", "run:1", id)
		if original := OriginalID("analyst", own); len(own) > 100 || !strings.HasPrefix(original, "sha256-") || NewID("analyst", "run:1", id) != own || NewID("analyst", "run:1", id+"x") == own {
			t.Errorf("NewID(%q) = %q, want a digest of its own", id, own)
		}
	}
	for _, id := range []string{"u1", "analyst:u1", "analyst:0123456789abcdeX:u1", "analyst:0123456789abcdef"} {
		if got := OriginalID("analyst", id); got != id {
			t.Errorf("OriginalID(%q) = %q, want it unchanged", id, got)
		}
	}
}

func TestIsNewID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "call_1", "a:b:c", "x:0123456789abcdef", "toolu_0123456789abcdef:x"} {
		if IsNewID(id) {
			t.Errorf("IsNewID(%q) = true", id)
		}
	}
}
