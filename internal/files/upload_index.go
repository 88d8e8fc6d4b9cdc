package files

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// tenantUploads are resumable uploads, without their names and parts.
type tenantUploads byTenant[*Resumable]

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

// decodeIndexedUpload decodes an upload, without its name and its parts.
func decodeIndexedUpload(entry jetstream.KeyValueEntry) (*Resumable, error) {
	u, err := decodeUpload(entry.Key(), entry.Value())
	if err == nil {
		u.Parts, u.encodedName = nil, nil
	}
	return u, err
}
