package stream

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// MaxIDBytes bounds every id that comes from outside; it is also Temporal's bound for its own ids.
const MaxIDBytes = 1000

// Thread names a conversation: the address everything else hangs on.
type Thread struct {
	Tenant string `json:"tenant"`
	ID     string `json:"thread"`
}

// Run names one AG-UI run of a thread.
type Run struct {
	Thread
	ID string `json:"run"`
}

// Lane is a slot of one sequential writer within a run, the last token of its subject.
type Lane string

const (
	// LaneMain carries the lifecycle and the model calls, one after the other.
	LaneMain Lane = "main"
	// LaneControl carries the request to cancel.
	LaneControl Lane = "ctl"
	// LaneAsks carries what is asked while others of the run are under way.
	LaneAsks Lane = "ask"
	// laneState carries marks: see Attempt.FinishOn.
	laneState Lane = "state"
)

// MaxToolLanes bounds how many tool calls of one agent write at the same time.
const MaxToolLanes = 8

// Tool is the i-th slot for parallel tool calls of the agent that speaks on a lane, 0 ≤ i < MaxToolLanes.
// Those of the run's own agent are t0 to t7, those of a subagent on s2 are s2t0 to s2t7.
func (l Lane) Tool(i int) Lane { return l.slot('t', i) }

// Subagent is the lane of a subagent that works for the call in the i-th slot: s2, or within another s2s0.
func (l Lane) Subagent(i int) Lane { return l.slot('s', i) }

func (l Lane) slot(kind byte, i int) Lane {
	if l == LaneMain {
		l = ""
	}
	return Lane(fmt.Sprintf("%s%c%d", l, kind, i))
}

// Subagents tells whether a lane is one of a subagent: what it says itself, or what its tools do.
func (l Lane) Subagents() bool { return strings.HasPrefix(string(l), "s") }

// Speaks tells whether an agent speaks on the lane, as opposed to its tools.
func (l Lane) Speaks() bool {
	return l == LaneMain || l.Subagents() && !strings.Contains(string(l), "t")
}

// proposalPrefix begins the lanes of what came from outside and is not yet accepted.
const proposalPrefix = "in-"

// Equals reports whether two lanes are the same.
func (l Lane) Equals(other Lane) bool { return l == other }

// IsProposal tells whether a lane holds a proposal, which readers never see.
func (l Lane) IsProposal() bool { return strings.HasPrefix(string(l), proposalPrefix) }

var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token is the form of an id in subjects and in Temporal ids: the id itself where it is made of
// letters, digits, "-" and "_" and has at most 64 of them, else "~" and 160 bits of its SHA-256.
// Distinct ids have distinct tokens: no plain id begins with "~".
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

// Identify derives an id from a run and a place in it. Attempts of the same step derive the same
// id, so a retry or a replay never mints a second identity for the same thing; the run id is part
// of it because ids must be unique in their thread. No id has a NUL, which separates them here.
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

// LaneSubject is the subject of a lane.
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
