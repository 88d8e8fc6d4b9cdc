package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LoadDir reads the *.yaml and *.yml files of a folder and of its subfolders, without hidden ones
// and node_modules. It reports all mistakes of all files, joined. Two documents of the same kind
// and name are an error, and so are handoffs to agents of the folder that cannot take part in one.
func LoadDir(dir string) (*Folder, error) {
	folders, err := FoldersIn(dir)
	if err != nil {
		return nil, err
	}
	files, err := definitionFiles(folders...)
	if err != nil {
		return nil, err
	}
	all := &Folder{}
	var errs []error
	positions := map[string]SourcePosition{}
	for _, file := range files {
		data, err := read(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r := newReader(file)
		found, names := r.folder(data)
		if err := r.err(); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := all.merge(found, names, positions); err != nil {
			errs = append(errs, err)
		}
	}
	if errs = append(errs, all.impossibleHandoffs(positions)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	all.positions = positions
	slices.SortFunc(all.Agents, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Tools, func(a, b *Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Scripts, func(a, b *Script) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// NamesIn returns the names of a folder's documents, without those of subfolders. It skips files
// that it cannot parse: LoadDir reports their mistakes.
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

// definitionFiles returns the paths of the YAML files of folders, without their subfolders.
func definitionFiles(folders ...string) ([]string, error) {
	var files []string
	for _, folder := range folders {
		entries, err := entriesOf(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.IsDir() && IsDefinitionFile(entry.Name()) {
				files = append(files, filepath.Join(folder, entry.Name()))
			}
		}
	}
	return files, nil
}

// IsDefinitionFile reports whether LoadDir reads a file of this name.
func IsDefinitionFile(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(name, ".")
}

// FoldersIn returns the folders whose files LoadDir reads: the folder itself, and all below it
// except hidden ones and node_modules. It does not follow symbolic links to subfolders, which may
// form a circle.
func FoldersIn(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("agents folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("agents folder: %s is not a folder", dir)
	}
	folders := []string{dir}
	for i := 0; i < len(folders); i++ {
		entries, err := entriesOf(folders[i])
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if name := entry.Name(); entry.IsDir() && !strings.HasPrefix(name, ".") && name != "node_modules" {
				folders = append(folders, filepath.Join(folders[i], name))
			}
		}
	}
	return folders, nil
}

// entriesOf returns the entries of a folder, sorted by name. A folder that a build tool has removed
// meanwhile has none.
func entriesOf(folder string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("agents folder: %w", err)
	}
	return entries, nil
}

// read returns up to MaxFile+1 bytes of a file, so that the parser sees a file that is too large.
// It follows symbolic links, of which a mounted ConfigMap consists.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, &DefinitionError{File: file, Reason: "is not a file"}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading: Close has nothing to write
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	return data, nil
}
