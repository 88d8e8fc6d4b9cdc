package files

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/stream"
)

// reservation is the value of an upload that is under way: it counts among the bytes of its tenant, so
// concurrent uploads cannot exceed a quota together. Its key is one below the files of the tenant, which
// the index watches. No file has the ID, because it lacks idPrefix.
type reservation struct {
	Size int64 `json:"size"` // in bytes, as announced
}

// reservationPrefix begins the ID of a reservation.
const reservationPrefix = "reserved_"

const (
	// reservationTime is when the reservation of a process that has died ends.
	reservationTime = UploadTime + time.Minute
	// indexTime bounds how long a reservation waits for the index.
	indexTime = 10 * time.Second
)

// reservations are the bytes of uploads by the token of their tenant and their ID.
type reservations map[string]map[string]int64

// set applies an entry of a reservation.
func (t reservations) set(tenant, id string, entry jetstream.KeyValueEntry) {
	var r reservation
	if entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(entry.Value(), &r) != nil {
		if delete(t[tenant], id); len(t[tenant]) == 0 {
			delete(t, tenant)
		}
		return
	}
	if t[tenant] == nil {
		t[strings.Clone(tenant)] = map[string]int64{}
	}
	t[tenant][strings.Clone(id)] = r.Size
}

// bytes returns the bytes of the uploads of a tenant.
func (t reservations) bytes(tenant string) (n int64) {
	for _, size := range t[stream.KeyToken(tenant)] {
		n += size
	}
	return n
}
