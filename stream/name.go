package stream

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// MaxIDBytes bounds every ID that comes from outside. Temporal has the same bound.
const MaxIDBytes = 1000

// Thread names a conversation of a tenant.
type Thread struct {
	Tenant string `json:"tenant"`
	ID     string `json:"thread"`
}

// Run names one AG-UI run of a thread.
type Run struct {
	Thread
	ID string `json:"run"`
}

// Lane is a slot of one sequential writer in a run: the last token of its subject.
type Lane string

const (
	// LaneMain has the lifecycle events and the model calls, one after the other.
	LaneMain Lane = "main"
	// LaneControl has the request to cancel.
	LaneControl Lane = "ctl"
	// LaneAsks has interrupts of branches and subagents that are announced while others of the run
	// work.
	LaneAsks Lane = "ask"
	// laneState has marks (see Attempt.FinishOn).
	laneState Lane = "state"
)

// MaxToolLanes bounds how many tool calls of one agent write concurrently.
const MaxToolLanes = 8

// Tool returns the i-th slot for parallel tool calls of the agent that speaks on a lane, 0 ≤ i <
// MaxToolLanes. Those of the run's own agent are t0 to t7, those of a subagent on s2 are s2t0 to
// s2t7.
func (l Lane) Tool(i int) Lane { return l.slot('t', i) }

// Subagent returns the lane of a subagent that works for the call in the i-th slot: s2, or within
// another s2s0.
func (l Lane) Subagent(i int) Lane { return l.slot('s', i) }

func (l Lane) slot(kind byte, i int) Lane {
	if l == LaneMain {
		l = ""
	}
	return Lane(fmt.Sprintf("%s%c%d", l, kind, i))
}

// Subagents reports whether a lane is one of a subagent or of its tools.
func (l Lane) Subagents() bool { return strings.HasPrefix(string(l), "s") }

// Speaks reports whether an agent writes on the lane, and not its tools.
func (l Lane) Speaks() bool {
	return l == LaneMain || l.Subagents() && !strings.Contains(string(l), "t")
}

// proposalPrefix begins the lanes of proposals.
const proposalPrefix = "in-"

// Equals reports whether two lanes are the same.
func (l Lane) Equals(other Lane) bool { return l == other }

// IsProposal reports whether a lane has a proposal, which readers never see.
func (l Lane) IsProposal() bool { return strings.HasPrefix(string(l), proposalPrefix) }

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token returns an ID in subjects and in Temporal's IDs: the ID itself if it consists of at most 64
// letters, digits, "-" and "_", else "~" and 160 bits of its SHA-256. Different IDs have different
// tokens: no plain ID begins with "~".
func Token(id string) string {
	if isPlain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "~" + tokenEncoding.EncodeToString(sum[:20])
}

func isPlain(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// Identify derives an ID from a run and a place in it. All attempts of a step derive the same ID.
// The run ID is part of it, because IDs must be unique in their thread. The parts are separated by
// NUL, which no ID has.
func (r Run) Identify(kind, place string) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.Thread.ID + "\x00" + r.ID + "\x00" + kind + "\x00" + place))
	return kind + "_" + tokenEncoding.EncodeToString(sum[:15])
}

// ThreadSubject begins the subjects of a thread's records.
func (l *Log) ThreadSubject(t Thread) string {
	return l.prefix + "." + Token(t.Tenant) + "." + Token(t.ID)
}

// RunSubject begins the subjects of a run's records.
func (l *Log) RunSubject(r Run) string { return l.ThreadSubject(r.Thread) + "." + Token(r.ID) }

// LaneSubject returns the subject of a lane.
func (l *Log) LaneSubject(r Run, lane Lane) string { return l.RunSubject(r) + "." + string(lane) }

// splitSubject takes a record's subject apart without allocating: thread is everything up to the
// thread's token, as threadSubject builds it.
func splitSubject(subject string) (thread, run string, lane Lane, ok bool) {
	laneAt := strings.LastIndexByte(subject, '.')
	if laneAt < 0 {
		return "", "", "", false
	}
	runAt := strings.LastIndexByte(subject[:laneAt], '.')
	if runAt < 0 {
		return "", "", "", false
	}
	return subject[:runAt], subject[runAt+1 : laneAt], Lane(subject[laneAt+1:]), true
}
