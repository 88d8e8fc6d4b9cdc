package files

import (
	"encoding/json"
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

// reservations are the bytes of uploads.
type reservations byTenant[int64]

// decodeReservation decodes the bytes of a reservation.
func decodeReservation(entry jetstream.KeyValueEntry) (int64, error) {
	var r reservation
	err := json.Unmarshal(entry.Value(), &r)
	return r.Size, err //nolint:wrapcheck // the entry is as none
}

// bytes returns the bytes of the uploads of a tenant.
func (t reservations) bytes(tenant string) (n int64) {
	for _, size := range t[stream.KeyToken(tenant)] {
		n += size
	}
	return n
}
