// Package principals knows the people and services whose tenants and roles the operator has
// configured in a file:
//
//	approvers:                       # who may decide by a link that names them
//	  - subject: alice
//	    tenant: shop                 # default: the tenant default
//	    roles: [finance]
//	services:                        # as whom schedules may run
//	  - subject: nightly-report
//	    tenant: shop
//	    roles: [reports]
//
// The file may change while the process runs. A caller asks for a principal each time that it acts,
// so that a role that the file has lost has no effect any more.
package principals

import (
	"log/slog"
	"sync/atomic"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// Principals are the principals of a file. They follow its changes until Close. They are safe for
// concurrent use. A nil *Principals has no principal.
type Principals struct {
	// Changes tells which contents of the file are in use. The names of its entries are kind, tenant
	// and subject: "approver shop/alice".
	filewatch.Changes

	current atomic.Pointer[table]
	watch   *filewatch.Watch // nil = there is no file
}

// Open reads a file, YAML or JSON, and watches it. A change that is invalid is logged, and the
// earlier content stays. An empty name is a file without principals. The caller must call Close.
func Open(file string, logger *slog.Logger) (*Principals, error) {
	p := &Principals{}
	p.current.Store(&table{})
	if file == "" {
		return p, nil
	}
	watch := filewatch.Start(func() {
		if err := p.load(file); err != nil {
			logger.Warn("the file of principals is invalid: its earlier content stays in use", "error", err)
		} else {
			logger.Info("the file of principals has changed")
		}
	}, file)
	if err := p.load(file); err != nil {
		watch.Stop()
		return nil, err
	}
	p.watch = watch
	return p, nil
}

// Of returns principals that do not change, for programs without a file. Errors: those of a file
// with these lists.
func Of(approvers, services []auth.Principal) (*Principals, error) {
	t := &table{}
	if err := t.addAll(Approver, approvers); err != nil {
		return nil, err
	}
	if err := t.addAll(Service, services); err != nil {
		return nil, err
	}
	p := &Principals{}
	p.current.Store(t)
	return p, nil
}

// Find returns a principal with the roles that it has now; ok is false if there is none of the kind.
func (p *Principals) Find(kind Kind, tenant, subject string) (found auth.Principal, ok bool) {
	if p == nil {
		return found, false
	}
	found, ok = (*p.current.Load())[id{kind, tenant, subject}]
	return found, ok
}

// Close ends the watch of the file. The principals stay.
func (p *Principals) Close() {
	if p.watch != nil {
		p.watch.Stop()
	}
}

// load reads the file.
func (p *Principals) load(file string) error {
	t, digest, err := read(file)
	if err == nil {
		p.current.Store(&t)
		p.Take(digest, t.entries())
	}
	return err
}
