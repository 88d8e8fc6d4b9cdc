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

// LoadDir reads the documents in a folder: its *.yaml and *.yml files, but not hidden ones or what
// is in folders below. All errors of all files are reported at once, joined; two documents of one
// kind and name are one.
func LoadDir(dir string) (*Folder, error) {
	files, err := definitionFiles(dir)
	if err != nil {
		return nil, err
	}
	all := &Folder{}
	var wrong []error
	taken := map[string]Place{}
	for _, file := range files {
		data, err := read(file)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		r := newReader(file)
		found, places := r.folder(data)
		if err := r.err(); err != nil {
			wrong = append(wrong, err)
			continue
		}
		if err := all.merge(found, places, taken); err != nil {
			wrong = append(wrong, err)
		}
	}
	if wrong = append(wrong, all.complainTakers(taken)...); len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	all.places = taken
	slices.SortFunc(all.Agents, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Tools, func(a, b *Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Scripts, func(a, b *Script) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// NamesIn returns the names of the documents in a folder, as far as they can be read: what is wrong with its files is for
// [LoadDir] to tell.
func NamesIn(dir string) Names {
	files, err := definitionFiles(dir)
	if err != nil {
		return Names{}
	}
	var all Names
	for _, file := range files {
		if data, err := read(file); err == nil {
			if f, err := ParseFile(file, data); err == nil {
				all = all.With(f.Names())
			}
		}
	}
	return all
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

// read follows symbolic links, which is what a mounted ConfigMap consists of.
func read(file string) ([]byte, error) {
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
	return data, nil
}
