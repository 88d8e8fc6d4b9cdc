package quota

import (
	"fmt"
	"sync"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// The names of what Bytes counts, for problems and metrics. The file of quotas has none of them.
const (
	BodyBytes   Name = "bodyBytes"
	AnswerBytes Name = "answerBytes"
)

// uncountedBytes is the part of every request that takes nothing of Bytes. So a process without a
// free byte still reads small bodies, takes commands and gives small answers.
const uncountedBytes = 64 << 10

// Bytes shares the bytes of an API process among tenants and their subjects: those of bodies that it
// decodes, for instance. It is safe for concurrent use.
//
//   - A tenant takes at most as many bytes as it leaves free: half of them, and half of the rest if
//     others have their share.
//   - A subject takes at most half of what its tenant may take, in the same way: it leaves the tenant
//     as many as it has.
//   - The only request of a tenant or of a subject may exceed that share. So the largest body has
//     room, unless the process has not so many free bytes.
type Bytes struct {
	table *Table
	name  Name

	mu    sync.Mutex
	free  int64
	taken map[holder]int64 // without holders that have none
}

// NewBytes returns a number of free bytes. table gives the labels of metrics; nil = the default.
func NewBytes(free int64, table *Table, name Name) *Bytes {
	return &Bytes{table: table, name: name, free: free, taken: map[holder]int64{}}
}

// Portion is what one request has of Bytes. One goroutine at a time uses it, and calls Release at
// the end.
type Portion struct {
	bytes   *Bytes
	tenant  holder
	subject holder // equals tenant for a caller without a subject
	taken   int64
}

// Portion returns an empty portion for a request of a caller. The zero principal is that of all
// requests without credentials.
func (b *Bytes) Portion(caller auth.Principal) *Portion {
	return &Portion{bytes: b, tenant: holder{tenant: caller.Tenant}, subject: holder{caller.Tenant, caller.Subject}}
}

// ShareError tells that a tenant or a subject has its share of the bytes of an API process.
type ShareError struct {
	Name Name
	// Holder is "tenant" or "subject".
	Holder string
	// Used are the bytes that the holder has.
	Used int64
}

// Error implements error.
func (e *ShareError) Error() string {
	return fmt.Sprintf("quota: the %s has %d %s, its share of the process", e.Holder, e.Used, e.Name)
}

// Grow takes bytes until the portion suffices for a request of size bytes, of which the first
// uncountedBytes need none. It does not wait. Errors: *ShareError, or ErrFull if the process has not
// so many free bytes. After an error the portion is as before.
func (p *Portion) Grow(size int) error {
	more := int64(size) - uncountedBytes - p.taken
	if more <= 0 {
		return nil
	}
	b := p.bytes
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.free - more
	if free < 0 {
		return ErrFull
	}
	ofTenant := b.taken[p.tenant] + more
	if b.taken[p.tenant] > p.taken && ofTenant > free {
		return b.refuse(p.tenant, "tenant")
	}
	if p.subject != p.tenant {
		// The tenant may take (free-ofTenant)/2 more bytes.
		ofSubject := b.taken[p.subject] + more
		if b.taken[p.subject] > p.taken && ofSubject > (free-ofTenant)/2 {
			return b.refuse(p.subject, "subject")
		}
		b.taken[p.subject] = ofSubject
	}
	b.taken[p.tenant], b.free = ofTenant, free
	p.taken += more
	return nil
}

// refuse returns the error of a holder that has its share, and counts it. The caller holds mu.
func (b *Bytes) refuse(h holder, kind string) error {
	telemetry.QuotaRefused(b.table.label(h.tenant), string(b.name))
	return &ShareError{Name: b.name, Holder: kind, Used: b.taken[h]}
}

// Release returns the bytes of the portion. A later call has no effect.
func (p *Portion) Release() {
	if p.taken == 0 {
		return
	}
	b := p.bytes
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += p.taken
	b.giveBack(p.tenant, p.taken)
	if p.subject != p.tenant {
		b.giveBack(p.subject, p.taken)
	}
	p.taken = 0
}

// giveBack removes bytes from those of a holder. The caller holds mu.
func (b *Bytes) giveBack(h holder, bytes int64) {
	if b.taken[h] -= bytes; b.taken[h] == 0 {
		delete(b.taken, h)
	}
}
