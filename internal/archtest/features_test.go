package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	eventType  = regexp.MustCompile(`EventType = "([A-Z_]+)"`)
	featureRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z]+: [^`]+)`")
)

// TestFeaturesOfTheReference: the page about AG-UI has each event type, and the YAML of its
// features loads.
func TestFeaturesOfTheReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/agui.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../agui/event.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Features\n")
	features, rest, _ := strings.Cut(rest, "\n## Events\n")
	events, _, _ := strings.Cut(rest, "\n## ")
	for _, event := range eventType.FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(events, "`"+event[1]+"`") {
			t.Errorf("the table of events does not have %s", event[1])
		}
	}
	rows := featureRow.FindAllStringSubmatch(features, -1)
	if len(rows) < 15 {
		t.Errorf("only %d features have YAML", len(rows))
	}
	for _, row := range rows {
		if err := loadBlock(t, row[1]+"\n"); err != nil {
			t.Error(err)
		}
	}
}
