package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// deed is an executed action.
type deed struct {
	Did    string  `json:"did"`
	Number string  `json:"number"` // of the reservation, payment or parcel
	Price  float64 `json:"price,omitempty"`
}

// entry is a line of the journal: a deed with the idempotency key of its request.
type entry struct {
	deed
	Key string `json:"key,omitempty"`
}

// journal is a file with one entry in JSON per line. It is not safe for concurrent use.
type journal struct{ file *os.File }

// openJournal opens a file for reading and appending, and creates it if it is missing.
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

// entries reads all entries of the file. It is called once, before add.
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

// add appends an entry with a single write, so that a kill of the process leaves either the whole
// line or nothing.
func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}
