package kit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ObservedPrograms is the folder of programs whose workers have two tools more than the product
// has: they tell the stage that they run. Nothing else differs, and the product's sources stay as
// they are: the compiler is given one file of theirs changed, and one beside it.
var ObservedPrograms string

var BuildObserved = sync.OnceValue(func() error {
	dir := ObservedPrograms
	overlay, err := overlayTools(dir)
	if err != nil {
		return err
	}
	// What has no tools is as it is elsewhere.
	if err := buildCluster(); err != nil {
		return err
	}
	for _, name := range []string{"api", "servers"} {
		if err := os.Symlink(filepath.Join(Programs, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return Execute("..", "go", "build", "-overlay", overlay, "-o", dir+string(filepath.Separator), "./cmd/perdure", "./cmd/worker")
})

// overlayTools writes what the compiler is to read instead of the product's list of tools.
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
		return "", errors.New("tools/builtin/doc.go does not declare Tools as it did")
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
