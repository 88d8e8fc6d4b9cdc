package files

import (
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// byTenant are values by the token of their tenant and their ID.
type byTenant[V any] map[string]map[string]V

// set applies an entry: a value, or the end of one. What cannot be decoded is as none.
func (t byTenant[V]) set(tenant, id string, entry jetstream.KeyValueEntry, decode func(jetstream.KeyValueEntry) (V, error)) {
	if entry.Operation() == jetstream.KeyValuePut {
		if value, err := decode(entry); err == nil {
			if t[tenant] == nil {
				t[strings.Clone(tenant)] = map[string]V{}
			}
			t[tenant][strings.Clone(id)] = value
			return
		}
	}
	if delete(t[tenant], id); len(t[tenant]) == 0 {
		delete(t, tenant)
	}
}
