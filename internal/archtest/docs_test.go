package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	const root = "../.."
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) < 30 {
		t.Fatalf("number of pages = %d, %v, want at least 30", len(files), err)
	}
	return files
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	blockPattern   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(page string) map[string]bool {
	seen := map[string]bool{}
	for _, h := range headingPattern.FindAllStringSubmatch(blockPattern.ReplaceAllString(page, ""), -1) {
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(h[1])), ""), " ", "-")
		for n, of := 1, anchor; seen[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", of, n)
		}
		seen[anchor] = true
	}
	return seen
}

// TestLinksHaveTargets: every link to a file of the repository names an existing file, and every
// anchor an existing heading.
func TestLinksHaveTargets(t *testing.T) {
	t.Parallel()
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linkPattern.FindAllStringSubmatch(blockPattern.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], ":") || strings.ContainsAny(link[1], `"`) {
				continue
			}
			path, anchor, _ := strings.Cut(link[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, link[1])
				continue
			}
			if anchor == "" {
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil || !anchors(string(page))[anchor] {
				t.Errorf("%s: the link to %s leads to no heading", file, link[1])
			}
		}
	}
}

// TestIndexHasEveryPage: the index links to every page.
func TestIndexHasEveryPage(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pages(t) {
		page, inDocs := strings.CutPrefix(filepath.ToSlash(file), "../../docs/")
		if !inDocs || page == "README.md" || strings.HasPrefix(page, "guides/examples/") {
			continue
		}
		if !strings.Contains(string(index), "("+page+")") {
			t.Errorf("docs/README.md does not have %s", page)
		}
	}
}

// TestPicturesOfGuides: each picture has at most 80 KB, and a page shows it.
func TestPicturesOfGuides(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, file := range pages(t) {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(page)
	}
	pictures, err := filepath.Glob("../../docs/guides/images/*")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	for _, picture := range pictures {
		info, err := os.Stat(picture)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 80_000 {
			t.Errorf("%s has %d bytes", picture, info.Size())
		}
		if !strings.Contains(text.String(), "](images/"+filepath.Base(picture)+")") {
			t.Errorf("no page shows %s", picture)
		}
	}
}

// TestArchitectureNamesEveryPackage: the tables of the architecture page have every package, by the
// last part of its path, except for packages of examples and of tests.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, found := strings.Cut(string(page), "## Where the code lives")
	if !found {
		t.Fatal("the page has no section Where the code lives")
	}
	isElsewhere := regexp.MustCompile(`^(examples|e2e)/|/internal/`)
	for path, p := range load(t) {
		directory, isPart := strings.CutPrefix(path, module+"/")
		if !p.own() || !isPart || testKit(path) || isElsewhere.MatchString(directory) {
			continue
		}
		if name := filepath.Base(directory); !regexp.MustCompile("[`/]" + name + "/?`").MatchString(tables) {
			t.Errorf("Where the code lives in docs/internals/architecture.md does not have %s", directory)
		}
	}
}
