package files

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// tenantUploads are resumable uploads, without their names and parts, by the token of their tenant and
// their ID.
type tenantUploads map[string]map[string]*Resumable

// bytes returns the bytes of the files that the uploads of a tenant will be. Those that are stored are
// files.
func (t tenantUploads) bytes(tenant string) (n int64) {
	for _, u := range t[stream.KeyToken(tenant)] {
		if !u.IsStored {
			n += u.Size
		}
	}
	return n
}

// list returns the IDs of the uploads of an owner, in order.
func (t tenantUploads) list(tenant, owner string) (ids []string) {
	for id, u := range t[stream.KeyToken(tenant)] {
		if u.Owner == owner {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// all returns the uploads of all tenants.
func (t tenantUploads) all() (all []*Resumable) {
	for _, ofTenant := range t {
		for _, u := range ofTenant {
			all = append(all, u)
		}
	}
	return all
}

// set applies an entry of an upload.
func (t tenantUploads) set(tenant, id string, entry jetstream.KeyValueEntry) {
	if entry.Operation() == jetstream.KeyValuePut {
		if u, err := decodeUpload(entry.Key(), entry.Value()); err == nil {
			if t[tenant] == nil {
				t[strings.Clone(tenant)] = map[string]*Resumable{}
			}
			u.Parts, u.encodedName = nil, nil
			t[tenant][u.ID] = u
			return
		}
	}
	if delete(t[tenant], id); len(t[tenant]) == 0 {
		delete(t, tenant)
	}
}
