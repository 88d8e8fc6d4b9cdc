package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/secrets"
)

// A secret can be in a file: OPENAI_API_KEY_FILE names the file of OPENAI_API_KEY, and the folder
// PERDURE_SECRETS_DIR can have a file OPENAI_API_KEY. The value of a variable that is set has
// precedence over the folder. Files are read at each use, so a new value needs no restart.
const (
	fileSuffix    = "_FILE"
	secretsFolder = "PERDURE_SECRETS_DIR"
	// maxSecretFile is the maximum size of a file, in bytes. A list of certificates fits.
	maxSecretFile = 1 << 20
)

// get returns the value of a variable, or the secret in its file; "" = there is none, or the file
// cannot be read.
func (e environment) get(name string) string {
	value, _ := e.find(name)
	return value
}

// find is like get, with the reason why a file cannot be read. Errors: *VariableError.
func (e environment) find(name string) (string, error) {
	if value := e[name]; value != "" || !isSecret(name) {
		return value, nil
	}
	if path := e[name+fileSuffix]; path != "" {
		value, err := readSecret(path)
		if err != nil {
			return "", &VariableError{Name: name + fileSuffix, Err: err}
		}
		return value, nil
	}
	if folder := e[secretsFolder]; folder != "" {
		value, err := readSecret(filepath.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", &VariableError{Name: secretsFolder, Err: err}
		}
		return value, nil
	}
	return "", nil
}

// readSecret returns the text of a file, without line breaks at its end.
func readSecret(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's file
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("%s has more than %d bytes", path, maxSecretFile)
	}
	value := strings.TrimRight(string(content), "\r\n")
	if value == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}

// secretNames returns the names of all secrets that the environment has, sorted. The error says that
// the folder cannot be read, and is a *VariableError.
func (e environment) secretNames() (names []string, err error) {
	for name := range e {
		if name = strings.TrimSuffix(name, fileSuffix); isSecret(name) {
			names = append(names, name)
		}
	}
	if folder := e[secretsFolder]; folder != "" {
		entries, readErr := os.ReadDir(folder)
		if readErr != nil {
			err = &VariableError{Name: secretsFolder, Err: readErr}
		}
		for _, entry := range entries {
			if isSecret(entry.Name()) {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// checkSecrets reads the secrets of a process, and returns what is wrong with their files. Files of
// other processes are not read: this process may lack the permission. An API uses only those of
// PERDURE_SECRET_* that the sources of events name, which it checks when it opens the sources.
func (e environment) checkSecrets(p Process) []error {
	names, err := e.secretNames()
	problems := []error{err}
	for _, name := range names {
		if !slices.ContainsFunc(Variables(p), func(v Variable) bool { return v.secret && v.matches(name) }) {
			continue
		}
		if p == API && strings.HasPrefix(name, secrets.VariablePrefix) {
			continue
		}
		if e[name] != "" && e[name+fileSuffix] != "" {
			problems = append(problems, &VariableError{Name: name + fileSuffix, Err: fmt.Errorf("must not be set when %s is", name)})
		}
		_, err := e.find(name)
		problems = append(problems, err)
	}
	return problems
}
