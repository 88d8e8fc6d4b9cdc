package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file that names images.
type file struct {
	path       string
	content    []byte
	references []reference // in the order of the file
}

// span is a place in a file: the bytes from start to before end.
type span struct{ start, end int }

// reference is the name of an image in a file.
type reference struct {
	span
	line    int    // from 1
	name    string // without the digest: "nats:2.15-alpine"
	digest  string // "sha256:…"; "" = none
	current string // the digest that the tag has in the registry
}

// findFiles returns the files of the paths, and the Dockerfiles and YAML files of directories.
func findFiles(paths []string) ([]*file, error) {
	var files []*file
	for _, root := range paths {
		var found []string
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && (path == root || finderOf(path) != nil) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			f, err := readFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// readFile returns a file with its references.
func readFile(path string) (*file, error) {
	find := finderOf(path)
	if find == nil {
		return nil, fmt.Errorf("%s is neither a Dockerfile nor a YAML file", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	images, err := find(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	slices.SortFunc(images, func(a, b span) int { return a.start - b.start })
	f := &file{path: path, content: content}
	for _, at := range slices.Compact(images) {
		name, digest, _ := strings.Cut(string(content[at.start:at.end]), "@")
		line := 1 + bytes.Count(content[:at.start], []byte("\n"))
		f.references = append(f.references, reference{span: at, line: line, name: name, digest: digest})
	}
	return f, nil
}

// finderOf returns the function that finds the images in a file, in any order and perhaps repeated;
// nil = files of this kind name no images.
func finderOf(path string) func(content []byte) ([]span, error) {
	switch filepath.Ext(path) {
	case ".yml", ".yaml":
		return findInYAML
	}
	if base := filepath.Base(path); strings.HasPrefix(base, "Dockerfile") || strings.HasSuffix(base, ".Dockerfile") {
		return findInDockerfile
	}
	return nil
}

// pin writes the current digests into the file, and prints the references that it changes.
func (f *file) pin(out io.Writer) error {
	content := slices.Clone(f.content)
	for _, r := range slices.Backward(f.references) {
		content = slices.Replace(content, r.start, r.end, []byte(r.name+"@"+r.current)...)
	}
	if bytes.Equal(content, f.content) {
		return nil
	}
	if err := os.WriteFile(f.path, content, 0o600); err != nil { // the file exists, and keeps its permissions
		return err
	}
	for _, r := range f.references {
		if r.digest != r.current {
			fmt.Fprintf(out, "%s:%d: %s@%s\n", f.path, r.line, r.name, r.current)
		}
	}
	return nil
}
