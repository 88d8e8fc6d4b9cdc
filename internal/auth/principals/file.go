package principals

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// Bounds of a file: its bytes, and the number of its principals.
const (
	maxFile       = 1 << 20
	maxPrincipals = 10_000
)

// id identifies a principal.
type id struct {
	kind            Kind
	tenant, subject string
}

// table has the principals of one content of the file. It is not changed after it is built.
type table map[id]auth.Principal

// entry is a principal in the file.
type entry struct {
	Tenant  string   `yaml:"tenant"`
	Subject string   `yaml:"subject"`
	Roles   []string `yaml:"roles"`
}

// entries returns the principals by name, each with its roles, as filewatch.Changes compares them.
func (t table) entries() map[string]string {
	all := map[string]string{}
	for id, p := range t {
		all[fmt.Sprintf("%s %s/%s", id.kind, id.tenant, id.subject)] = fmt.Sprintf("%q", p.Roles)
	}
	return all
}

// read reads a file, and returns the digest of its content.
func read(name string) (t table, digest string, err error) {
	body, err := yamlfile.Read(name, maxFile)
	if err != nil {
		return nil, "", err
	}
	if t, err = parse(body); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return t, filewatch.DigestOf(body), nil
}

// parse parses the content of a file.
func parse(body []byte) (table, error) {
	var file struct {
		Approvers []entry `yaml:"approvers"`
		Services  []entry `yaml:"services"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			return table{}, nil // an empty file
		}
		return nil, fmt.Errorf("must have lists under approvers and services, each entry with subject, tenant and roles: %w", err)
	}
	if n := len(file.Approvers) + len(file.Services); n > maxPrincipals {
		return nil, fmt.Errorf("must have at most %d entries, not %d", maxPrincipals, n)
	}
	t := table{}
	if err := t.addAll(Approver, principalsOf(file.Approvers)); err != nil {
		return nil, err
	}
	return t, t.addAll(Service, principalsOf(file.Services))
}

// principalsOf returns the principals of entries.
func principalsOf(entries []entry) []auth.Principal {
	var all []auth.Principal
	for _, e := range entries {
		all = append(all, auth.Principal{Tenant: e.Tenant, Subject: e.Subject, Roles: e.Roles})
	}
	return all
}

// addAll validates principals and adds them.
func (t table) addAll(kind Kind, all []auth.Principal) error {
	for i, p := range all {
		p.Tenant = cmp.Or(p.Tenant, auth.TenantDefault)
		if err := t.add(kind, p); err != nil {
			return fmt.Errorf("%s[%d]: %w", kind, i, err)
		}
	}
	return nil
}

// add validates a principal and adds it.
func (t table) add(kind Kind, p auth.Principal) error {
	if p.Subject == "" {
		return errors.New("subject is missing")
	}
	if err := p.Check(); err != nil {
		return err
	}
	key := id{kind, p.Tenant, p.Subject}
	if _, exists := t[key]; exists {
		return fmt.Errorf("repeats the subject %q of the tenant %q", p.Subject, p.Tenant)
	}
	t[key] = p
	return nil
}
