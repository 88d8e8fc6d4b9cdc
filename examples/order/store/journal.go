package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// deed is something that was done.
type deed struct {
	Did    string  `json:"did"`
	Number string  `json:"number"` // of what it was done to
	Price  float64 `json:"price,omitempty"`
}

// entry is a deed, and the idempotency key that it was asked for with.
type entry struct {
	deed
	Key string `json:"key,omitempty"`
}

// journal is a file with an entry in each line.
type journal struct{ file *os.File }

func openJournal(name string) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file}, nil
}

func (j *journal) Close() error { return j.file.Close() }

// entries returns those of the file.
func (j *journal) entries() (all []entry, err error) {
	for lines := json.NewDecoder(j.file); ; {
		var e entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", j.file.Name(), err)
		}
		all = append(all, e)
	}
}

// add writes an entry with a single call, so that whoever is killed has written all of it or
// nothing.
func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}
