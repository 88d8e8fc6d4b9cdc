package remote

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLangGraphGuideIsTested: the guide's function that takes back a broken attempt is the one that
// TestFrameworksSurviveKills runs.
func TestLangGraphGuideIsTested(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "remote-langgraph.md"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := os.ReadFile(filepath.Join("node", "langgraph", "agent.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?s)async function takeBack.*?\n}\n`).FindString(string(guide))
	if function == "" || !strings.Contains(string(server), function) {
		t.Errorf("takeBack of the guide = %q, want that of node/langgraph/agent.mjs", function)
	}
}
