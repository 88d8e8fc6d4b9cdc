package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Load returns an engine with the default policies and those at a path: a file, or all files
// *.cedar of a folder, which must have one. "" = no policies of the operator.
func Load(roles Roles, path string) (*Engine, error) {
	if path == "" {
		return New(roles)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(path, "*.cedar")); err != nil {
			return nil, fmt.Errorf("policies: %w", err)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("policies: the folder %s has no file *.cedar", path)
		}
		slices.Sort(names)
	}
	var files []File
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("policies: %w", err)
		}
		files = append(files, File{name, text})
	}
	return New(roles, files...)
}
