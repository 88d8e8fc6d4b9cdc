package schedules

import (
	"cmp"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// TemporalID returns the ID of a schedule in Temporal.
func TemporalID(tenant, id string) string {
	return "schedule/" + stream.Token(tenant) + "/" + stream.Token(id)
}

// FireID returns the prefix of the workflow IDs of a schedule's firings. Temporal appends "-" and
// the nominal time in RFC 3339.
func FireID(tenant, id string) string {
	return "fire/" + stream.Token(tenant) + "/" + stream.Token(id)
}

// NominalTime returns the nominal time of a firing from its workflow ID. ok is false if the ID is
// not that of a firing of this schedule.
func NominalTime(tenant, id, workflowID string) (at time.Time, ok bool) {
	text, ok := strings.CutPrefix(workflowID, FireID(tenant, id)+"-")
	if !ok {
		return at, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// RunAt returns the run of a nominal time, to the second. The run's ID is <schedule>-<time>;
// without a ThreadID, the run has a thread of its own with the same ID.
func (s *Schedule) RunAt(tenant string, at time.Time) stream.Run {
	name := s.ID + "-" + at.UTC().Format("20060102T150405Z")
	return stream.Run{Thread: stream.Thread{Tenant: tenant, ID: cmp.Or(s.ThreadID, name)}, ID: name}
}
