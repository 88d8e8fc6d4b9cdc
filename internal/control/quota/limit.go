package quota

import (
	"errors"
	"fmt"
	"strconv"
)

// Name is the name of a bound, as in the file of quotas.
type Name string

// The bounds. Streams and Sockets are places of one API process; the following ones count what
// exists in all processes together.
const (
	Streams Name = "streams"
	Sockets Name = "sockets"
	// Runs are active runs. A held run and a paused run are active.
	Runs Name = "runs"
	// Waiting are threads whose last run has ended with open interrupts, or with client tool calls
	// without results. A parked workflow keeps each of them.
	Waiting   Name = "waitingThreads"
	Threads   Name = "threads"
	Schedules Name = "schedules"
	// Firings are the times of all schedules of a tenant in an hour, as their definitions have them.
	Firings Name = "firingsPerHour"
	// LogBytes are the bytes of the records and of their large contents.
	LogBytes Name = "logBytes"
	// FileBytes are the bytes of files, and those announced by uploads that are under way. Files with
	// the same bytes count each.
	FileBytes Name = "fileBytes"
	// Agents are the agents of a tenant; of the tenant "", those of the platform.
	Agents Name = "agents"
	// DefinitionBytes are the bytes of all revisions of these agents, each as often as it was
	// published.
	DefinitionBytes Name = "definitionBytes"

	// SubjectPercent is the part of its tenant's Streams, Sockets, Runs, Schedules and Firings that
	// a subject may have.
	SubjectPercent Name = "subjectPercent"

	// Rates of one process, per second: of all requests, and of those that write or start runs;
	// of a tenant, and of each of its subjects.
	Requests        Name = "requestsPerSecond"
	Writes          Name = "writesPerSecond"
	SubjectRequests Name = "subjectRequestsPerSecond"
	SubjectWrites   Name = "subjectWritesPerSecond"
	// Unauthenticated is the rate of requests of one address without valid credentials.
	Unauthenticated Name = "unauthenticatedPerSecond"
)

// Counted are the bounds of what exists, in the order of the documentation.
var Counted = []Name{Streams, Sockets, Runs, Waiting, Threads, Schedules, Firings, LogBytes, FileBytes, Agents, DefinitionBytes}

// Rated are the bounds of rates of tenants, in the order of the documentation.
var Rated = []Name{Requests, Writes, SubjectRequests, SubjectWrites}

// Limit is the largest permitted number, or rate per second.
type Limit int64

// Unlimited is the limit of what has none.
const Unlimited Limit = -1

// Permits reports whether n more may be added to what is used.
func (l Limit) Permits(used, n int64) bool { return l == Unlimited || used+n <= int64(l) }

// String returns the limit as the file has it.
func (l Limit) String() string {
	if l == Unlimited {
		return "unlimited"
	}
	return strconv.FormatInt(int64(l), 10)
}

// Defaults of the bounds. Streams and Sockets have none: a Room keeps a part of its places free for
// other tenants.
const (
	defaultRuns            = 10_000
	defaultWaiting         = 100_000
	defaultThreads         = 1_000_000
	defaultSchedules       = 1_000
	defaultFirings         = 7_200
	defaultLogBytes        = 100 << 30
	defaultFileBytes       = 100 << 30
	defaultAgents          = 1_000
	defaultDefinitionBytes = 256 << 20
	defaultSubjectPercent  = 50

	defaultRequests        = 1_000
	defaultWrites          = 500
	defaultSubjectRequests = 500
	defaultSubjectWrites   = 250
	defaultUnauthenticated = 20
)

// limits are bounds by name. A missing one = the next more general value.
type limits map[Name]Limit

// defaults are the bounds without a file.
var defaults = limits{
	Streams: Unlimited, Sockets: Unlimited, Runs: defaultRuns, Waiting: defaultWaiting, Threads: defaultThreads,
	Schedules: defaultSchedules, Firings: defaultFirings, LogBytes: defaultLogBytes, FileBytes: defaultFileBytes, Agents: defaultAgents,
	DefinitionBytes: defaultDefinitionBytes, SubjectPercent: defaultSubjectPercent,
	Requests: defaultRequests, Writes: defaultWrites, SubjectRequests: defaultSubjectRequests, SubjectWrites: defaultSubjectWrites,
	Unauthenticated: defaultUnauthenticated,
}

// ErrFull tells that an API process has no place left for a tenant: all are taken, or the tenant has
// its share of them. Another process may have one.
var ErrFull = errors.New("quota: the process has no place left")

// ExceededError tells that a tenant has reached a bound, or one of its subjects its part of the
// bound.
type ExceededError struct {
	Quota Name
	Limit Limit
	Used  int64
	// OfSubject tells that Limit and Used are those of a subject.
	OfSubject bool
}

// Error implements error.
func (e *ExceededError) Error() string {
	if e.OfSubject {
		return fmt.Sprintf("quota: the subject has %d of the %s %s that one subject may have", e.Used, e.Limit, e.Quota)
	}
	return fmt.Sprintf("quota: the tenant has %d of %s %s", e.Used, e.Limit, e.Quota)
}
