package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LoadDir reads the definitions in a folder: its *.yaml and *.yml files, but
// not hidden ones or what is in folders below. They come sorted by name. All
// errors of all files are reported at once, joined; two files with one name are one.
func LoadDir(dir string) ([]*Definition, error) {
	files, err := definitionFiles(dir)
	if err != nil {
		return nil, err
	}
	var definitions []*Definition
	var wrong []error
	first := map[string]string{}
	for _, file := range files {
		d, err := load(file)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if other, ok := first[d.Name]; ok {
			wrong = append(wrong, &DefinitionError{
				File: file, Key: "name", Reason: fmt.Sprintf("name %q is taken by %s", d.Name, other),
			})
			continue
		}
		first[d.Name] = file
		definitions = append(definitions, d)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	slices.SortFunc(definitions, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	return definitions, nil
}

func definitionFiles(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("agents folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("agents folder: %s is not a folder", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("agents folder: %w", err)
	}
	var files []string
	for _, entry := range entries {
		ext := filepath.Ext(entry.Name())
		if entry.IsDir() || ext != ".yaml" && ext != ".yml" || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		files = append(files, filepath.Join(dir, entry.Name()))
	}
	return files, nil
}

// load follows symbolic links, which is what a mounted ConfigMap consists of.
func load(file string) (*Definition, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	if !info.Mode().IsRegular() { // a named pipe would be waited for
		return nil, &DefinitionError{File: file, Reason: "is not a file"}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	return Parse(file, data)
}
