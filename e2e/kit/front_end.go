package kit

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// FrontEnd is the folder of a front-end application. It has the packages of a directory in node/, and
// @perdure/client and @perdure/copilotkit as they are in this checkout.
type FrontEnd struct{ Dir string }

// react is the directory with the packages of pages, of their bundler and of the browser driver.
var react = filepath.Join("node", "react")

// NewFrontEnd makes a folder with the packages of node/copilotkit or node/react, which is removed when
// the test ends.
func NewFrontEnd(t *testing.T, packages string) FrontEnd {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	err := errors.Join(Install(react), os.Mkdir(modules, 0o700), linkPackages(modules, filepath.Join("node", packages, "node_modules")),
		buildPackage(modules, "typescript", "client"), buildPackage(modules, "copilotkit", "copilotkit"))
	if err != nil {
		t.Fatal(err)
	}
	return FrontEnd{dir}
}

// linkPackages links installed packages. Node and the bundler resolve a link, so that each package
// exists once.
func linkPackages(modules, installed string) error {
	installed, err := filepath.Abs(installed)
	if err != nil {
		return err
	}
	packages, err := os.ReadDir(installed)
	for _, p := range packages {
		err = errors.Join(err, os.Symlink(filepath.Join(installed, p.Name()), filepath.Join(modules, p.Name())))
	}
	return err
}

// buildPackage compiles clients/<source> to node_modules/@perdure/<name>. It does not use the npm
// script, because areas that run in parallel would write to the same files.
func buildPackage(modules, source, name string) error {
	from, to := filepath.Join("..", "clients", source), filepath.Join(modules, "@perdure", name)
	manifest, err := os.ReadFile(filepath.Join(from, "package.json"))
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(from, "src", "*.ts"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(to, "package.json"), manifest, 0o600),
		Execute(".", esbuild(), append(files, "--outdir="+filepath.Join(to, "dist"), "--target=es2022", "--log-level=warning")...))
}

// esbuild returns the path of the bundler.
func esbuild() string { return filepath.Join(react, "node_modules", ".bin", "esbuild") }

// Bundle bundles a page from its source in JSX, and returns the folder with page.html.
func (f FrontEnd) Bundle(t *testing.T, source string) string {
	t.Helper()
	const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="page.js"></script>`
	page, to := filepath.Join(f.Dir, "page.jsx"), filepath.Join(f.Dir, "public")
	err := errors.Join(os.WriteFile(page, []byte(source), 0o600), os.MkdirAll(to, 0o700),
		os.WriteFile(filepath.Join(to, "page.html"), []byte(html), 0o600),
		Execute(".", esbuild(), page, "--bundle", "--jsx=automatic", "--format=esm", "--splitting", "--minify", "--outdir="+to,
			`--define:process.env.NODE_ENV="production"`, "--loader:.woff2=empty", "--loader:.woff=empty", "--loader:.ttf=empty", "--log-level=error"))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Runtime are the options of a runtime with Perdure's runner.
type Runtime struct {
	BaseURL string            `json:"baseUrl"`
	Port    string            `json:"port,omitempty"` // by default any free port
	Agents  []string          `json:"agents,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Pages   string            `json:"pages,omitempty"` // a folder of pages that the runtime serves
}

// RunnerProcess is a process of CopilotKit's runtime with Perdure's runner.
type RunnerProcess struct {
	CopilotKit
	// Site is the URL of the pages.
	Site string
	// options start the process again at the same address.
	options Runtime
}

// StartRuntime starts CopilotKit's runtime, which is killed when the test ends.
func (f FrontEnd) StartRuntime(t *testing.T, options Runtime) *RunnerProcess {
	t.Helper()
	args, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("node", "runner.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	return f.launch(t, options, script, string(args))
}

// StartServer starts a server from its source, which prints its URL as the programs in node/ do.
func (f FrontEnd) StartServer(t *testing.T, source string) *RunnerProcess {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, "server.mjs"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.launch(t, Runtime{}, "server.mjs")
}

func (f FrontEnd) launch(t *testing.T, options Runtime, script string, args ...string) *RunnerProcess {
	t.Helper()
	server, err := launchNodeIn(f.Dir, script, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	site := server.URL
	at, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	server.URL, options.Port = site+"/api", at.Port()
	return &RunnerProcess{CopilotKit: CopilotKit{server}, Site: site, options: options}
}

// KillAndRestart kills the runtime with SIGKILL, and starts another process at the same address.
func (f FrontEnd) KillAndRestart(t *testing.T, r *RunnerProcess) *RunnerProcess {
	t.Helper()
	r.Kill()
	return f.StartRuntime(t, r.options)
}
