package kit

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
)

// updateSnapshots writes the ARIA snapshots of WantAria instead of comparing them.
var updateSnapshots = flag.Bool("update-aria", false, "write the ARIA snapshots of pages again")

// Press presses keys where the focus is, such as "j" or "Control+Enter".
func (p *Tab) Press(keys ...string) {
	p.browser.t.Helper()
	for _, key := range keys {
		p.do(map[string]any{"press": key})
	}
}

// Write writes a text where the focus is.
func (p *Tab) Write(text string) { p.browser.t.Helper(); p.do(map[string]any{"write": text}) }

// Grant grants permissions of the browser, such as "notifications", to the origin of the page.
func (p *Tab) Grant(permissions ...string) {
	p.browser.t.Helper()
	p.do(map[string]any{"grant": permissions})
}

// Choose chooses files in a field.
func (p *Tab) Choose(field string, files ...string) {
	p.browser.t.Helper()
	p.do(map[string]any{"files": files, "into": field})
}

// Resize gives the page a size in pixels.
func (p *Tab) Resize(width, height int) {
	p.browser.t.Helper()
	p.do(map[string]any{"width": width, "height": height})
}

// standards are the tags of axe-core for the levels A and AA of WCAG 2.2.
var standards = []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"}

// WantAccessible fails the test if the page violates a rule of WCAG 2.2 AA that axe-core knows, with
// light, dark or forced colors. Transitions are off during the check: their colors do not count.
func (p *Tab) WantAccessible() {
	t := p.browser.t
	t.Helper()
	p.do(map[string]any{"emulate": map[string]string{"reducedMotion": "reduce"}})
	for _, media := range []map[string]string{
		{"colorScheme": "light", "forcedColors": "none"},
		{"colorScheme": "dark", "forcedColors": "none"},
		{"colorScheme": "light", "forcedColors": "active"},
	} {
		p.do(map[string]any{"emulate": media})
		var violations []struct {
			ID, Help string
			Nodes    []string
		}
		if err := json.Unmarshal(p.do(map[string]any{"axe": standards}).Value, &violations); err != nil {
			t.Fatal(err)
		}
		for _, v := range violations {
			t.Errorf("%v: %s: %s\n%s", media, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
		}
	}
	p.do(map[string]any{"emulate": map[string]string{"colorScheme": "light", "forcedColors": "none", "reducedMotion": "no-preference"}})
}

// WantAria compares what a screen reader finds in an element with testdata/aria/<name>.yaml. Texts
// that differ between runs must be hidden by the caller: replacements are pairs of a text and what
// stands for it.
func (p *Tab) WantAria(element, name string, replacements ...string) {
	t := p.browser.t
	t.Helper()
	var got string
	if err := json.Unmarshal(p.do(map[string]any{"aria": element}).Value, &got); err != nil {
		t.Fatal(err)
	}
	got = strings.NewReplacer(replacements...).Replace(got) + "\n"
	file := filepath.Join("testdata", "aria", name+".yaml")
	if *updateSnapshots {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update-aria", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}
