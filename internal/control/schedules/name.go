package schedules

import (
	"cmp"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// TemporalID returns a schedule's id in Temporal.
func TemporalID(tenant, id string) string {
	return "schedule/" + stream.Token(tenant) + "/" + stream.Token(id)
}

// FireID returns what the ids of a schedule's firings begin with in Temporal, which adds the
// nominal time.
func FireID(tenant, id string) string {
	return "fire/" + stream.Token(tenant) + "/" + stream.Token(id)
}

// NominalOf reads the nominal time of a firing from its id.
func NominalOf(tenant, id, workflowID string) (at time.Time, ok bool) {
	text, ok := strings.CutPrefix(workflowID, FireID(tenant, id)+"-")
	if !ok {
		return at, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// RunAt returns the run that begins at a nominal time.
func (s *Schedule) RunAt(tenant string, at time.Time) stream.Run {
	name := s.ID + "-" + at.UTC().Format("20060102T150405Z")
	return stream.Run{Thread: stream.Thread{Tenant: tenant, ID: cmp.Or(s.ThreadID, name)}, ID: name}
}
