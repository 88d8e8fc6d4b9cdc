package kit

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FrontEnd is the folder of a front-end application. It has the packages of a directory in node/,
// @perdure/client as npm packs it, and @perdure/copilotkit as it is in this checkout.
type FrontEnd struct{ Dir string }

// react is the directory with the packages of pages with user interface libraries, and the bundler.
var react = filepath.Join("node", "react")

// NewFrontEnd makes a folder with the packages of node/copilotkit, node/react or node/page, which
// is removed when the test ends.
func NewFrontEnd(t *testing.T, packages string) FrontEnd {
	t.Helper()
	f := FrontEnd{t.TempDir()}
	f.InstallPackages(t, packages)
	return f
}

// InstallPackages installs the packages in an existing folder, without npm.
func (f FrontEnd) InstallPackages(t *testing.T, packages string) {
	t.Helper()
	modules := filepath.Join(f.Dir, "node_modules")
	from := filepath.Join("node", packages)
	err := errors.Join(Install(react), Install(from), os.Mkdir(modules, 0o700), linkPackages(modules, filepath.Join(from, "node_modules")),
		unpack(clientPackage, filepath.Join(modules, "@perdure", "client")), buildRunner(filepath.Join(modules, "@perdure", "copilotkit")))
	if err != nil {
		t.Fatal(err)
	}
}

// ClientPackage returns the npm package of the TypeScript client.
func ClientPackage(t *testing.T) []byte {
	t.Helper()
	body, err := os.ReadFile(clientPackage)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// unpack unpacks a package of npm, whose files are in the folder "package".
func unpack(archive, to string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		body, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(header.Name, "package/")))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, body, 0o600)); err != nil {
			return err
		}
	}
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

// buildRunner compiles clients/copilotkit to a folder. It does not use the npm script, because
// areas that run in parallel would write to the same files.
func buildRunner(to string) error {
	from := filepath.Join("..", "clients", "copilotkit")
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

// Bundle bundles pages from their sources, by the names of their files: page.jsx becomes page.html
// in the folder that Bundle returns. Files with another extension are modules that the pages
// import. One call for several pages bundles their common packages once.
func (f FrontEnd) Bundle(t *testing.T, sources map[string]string) string {
	t.Helper()
	const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="%s.js"></script>`
	to := filepath.Join(f.Dir, "public")
	err := os.MkdirAll(to, 0o700)
	args := []string{
		"--bundle", "--jsx=automatic", "--format=esm", "--splitting", "--outdir=" + to,
		`--define:process.env.NODE_ENV="production"`, "--loader:.woff2=empty", "--loader:.woff=empty", "--loader:.ttf=empty", "--log-level=error",
	}
	for file, source := range sources {
		path := filepath.Join(f.Dir, file)
		err = errors.Join(err, os.WriteFile(path, []byte(source), 0o600))
		if name, isPage := strings.CutSuffix(file, ".jsx"); isPage {
			args = append(args, path)
			err = errors.Join(err, os.WriteFile(filepath.Join(to, name+".html"), fmt.Appendf(nil, html, name), 0o600))
		}
	}
	if err = errors.Join(err, Execute(".", esbuild(), args...)); err != nil {
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

// launch starts a runner of a front end.
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
