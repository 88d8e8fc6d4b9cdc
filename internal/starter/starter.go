// Package starter has the files with which an agent, a tool or a chat begins. They are templates in
// the binary, and work as they are.
package starter

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/agents"
)

//go:embed all:templates
var templates embed.FS

// packedClient has the npm package of clients/typescript, which make build packs. Without it, the
// folder has no file but .gitignore.
//
//go:embed all:client
var packedClient embed.FS

// ErrNoClient: the binary was built without the npm package @perdure/client.
var ErrNoClient = errors.New("this binary was built without the npm package @perdure/client: build perdure with make build, which needs npm")

// placeholder stands for the name in the templates of agents and tools.
const placeholder = "__NAME__"

// File is a file to write. Name is relative to a folder, with slashes.
type File struct {
	Name string
	Data []byte
}

// Agent returns the definition of an agent. It fails if the name is not one of an agent.
func Agent(name string) ([]File, error) {
	return rendered(name, "agent.yaml")
}

// Tool returns the definition of an HTTP tool, with an agent that uses it, and the program that the
// tool calls. It fails if the name is not one of a tool and of an agent.
func Tool(name string) ([]File, error) {
	return rendered(name, "tool.yaml", "tool.mjs")
}

// rendered returns a file for each template, with the template's extension.
func rendered(name string, from ...string) ([]File, error) {
	var files []File
	for _, template := range from {
		text, err := templates.ReadFile("templates/" + template)
		if err != nil {
			return nil, err
		}
		f := File{Name: name + filepath.Ext(template), Data: bytes.ReplaceAll(text, []byte(placeholder), []byte(name))}
		if filepath.Ext(template) == ".yaml" {
			_, err := agents.ParseFile(f.Name, f.Data)
			if d := (*agents.DefinitionError)(nil); errors.As(err, &d) { // only the name can be wrong
				return nil, errors.New(d.Reason)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// Chat returns a page in React that chats with agents, and the npm package of the client that it
// uses. It fails with ErrNoClient if the binary has no package.
func Chat() ([]File, error) {
	client, err := packedClient.ReadFile("client/perdure-client.tgz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoClient
	}
	if err != nil {
		return nil, err
	}
	files := []File{{Name: "perdure-client.tgz", Data: client}}
	const root = "templates/chat"
	err = fs.WalkDir(templates, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := templates.ReadFile(path)
		files = append(files, File{Name: strings.TrimPrefix(path, root+"/"), Data: data})
		return err
	})
	return files, err
}

// Write writes files into a folder, which it creates if it is missing. It returns their paths. If
// one of the files exists, it writes none and fails with an error that matches fs.ErrExist.
func Write(folder string, files []File) (paths []string, err error) {
	for _, f := range files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s: %w; nothing was written", path, fs.ErrExist)
		}
		paths = append(paths, path)
	}
	for i, f := range files {
		if err := os.MkdirAll(filepath.Dir(paths[i]), 0o755); err != nil { //nolint:gosec // a folder of source code
			return nil, err
		}
		if err := create(paths[i], f.Data); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// create writes a new file. It fails if the file exists.
func create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of source code
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
