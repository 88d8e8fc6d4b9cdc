package kit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ObservedPrograms is the directory of programs whose workers have two more built-in tools: they
// report their calls to the test. The Go compiler reads an overlay in place of one source file, so
// the product's sources stay unchanged.
var ObservedPrograms string

// BuildObserved builds the programs with the two tools.
var BuildObserved = sync.OnceValue(func() error {
	dir := ObservedPrograms
	overlay, err := overlayTools(dir)
	if err != nil {
		return err
	}
	// The API and the servers have no tools: they are the same programs.
	if err := buildCluster(); err != nil {
		return err
	}
	for _, name := range []string{"api", "servers"} {
		if err := os.Symlink(filepath.Join(Programs, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return Build("..", dir+string(filepath.Separator), "-overlay", overlay, "./cmd/perdure", "./cmd/worker")
})

// overlayTools writes the overlay of the built-in tools and returns its file.
func overlayTools(dir string) (file string, err error) {
	const declared = "\nfunc Tools() []tools.Tool {"
	original, err := filepath.Abs(filepath.Join("..", "tools", "builtin", "doc.go"))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), declared) != 1 {
		return "", errors.New("tools/builtin/doc.go does not declare Tools as expected")
	}
	renamed := filepath.Join(dir, "doc.go")
	source = []byte(strings.Replace(string(source), declared, "\nfunc ownTools() []tools.Tool {", 1))
	added, err := filepath.Abs(filepath.Join("testdata", "observed", "observed.go"))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: renamed, filepath.Join(filepath.Dir(original), "observed.go"): added,
	}})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, errors.Join(os.WriteFile(renamed, source, 0o600), os.WriteFile(file, body, 0o600))
}
