package dojo

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestDojo runs test.mjs of the list of features, and of each feature, against its page and its
// agent. The pages are built as a user builds them, and served by Vite.
func TestDojo(t *testing.T) {
	kit.NeedBrowser(t)
	dojo, err := filepath.Abs(filepath.Join("..", "examples", "dojo"))
	if err != nil {
		t.Fatal(err)
	}
	var build errgroup.Group
	build.Go(func() error { return buildPages(dojo) })
	address := "127.0.0.1:" + strconv.Itoa(kit.FreePorts(t, 1)[0])
	p := kit.StartExample(t, "dojo", "127.0.0.1:5173", address)
	if err := build.Wait(); err != nil {
		t.Fatal(err)
	}
	servePages(t, dojo, address, p)

	origin := "http://" + address + "/"
	t.Run("index", func(t *testing.T) { kit.TestPage(t, filepath.Join(dojo, "test.mjs"), origin) })
	pages, err := filepath.Glob(filepath.Join(dojo, "*", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		folder := filepath.Dir(page)
		feature := filepath.Base(folder)
		if feature == "dist" {
			continue
		}
		t.Run(feature, func(t *testing.T) {
			kit.TestPage(t, filepath.Join(folder, "test.mjs"), origin+feature+"/#"+kit.NewThreadOf(p))
		})
	}
}

// buildPages builds the pages with the npm packages of the lock file, and with the TypeScript
// client that make has built.
func buildPages(dojo string) error {
	if err := kit.Install(dojo); err != nil {
		return err
	}
	return kit.Execute(dojo, "npm", "run", "build")
}

// servePages serves the built pages, the services of the features and the API at one address until
// the test ends.
func servePages(t *testing.T, dojo, address string, p *kit.Perdure) {
	t.Helper()
	port := address[len("127.0.0.1:"):]
	vite := exec.Command("node", filepath.Join("node_modules", "vite", "bin", "vite.js"), "preview", "--port", port)
	vite.Dir, vite.Env = dojo, append(os.Environ(), "PERDURE_URL="+p.URL(""))
	var output kit.Output
	process, err := kit.Launch(t.Context(), vite, &output, func(line []byte) bool { return bytes.Contains(line, []byte("127.0.0.1")) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
}
