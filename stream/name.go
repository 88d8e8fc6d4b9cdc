package stream

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// This file has the names of threads, runs and lanes, and the subjects of their records:
// <prefix>.<tenant>.<thread>.<run>.<lane>. Every token of an ID comes from Token, so an ID of a
// client can neither widen a subject filter nor address another tenant.

// MaxIDBytes bounds every ID that comes from outside. Temporal has the same bound.
const MaxIDBytes = 1000

// Thread names a conversation of a tenant. Both IDs are as the client knows them, not tokens. The
// same ID of two tenants names two threads.
type Thread struct {
	Tenant string `json:"tenant"`
	ID     string `json:"thread"`
}

// Run names one AG-UI run of a thread. The ID may have the mark of a segment (see Run.Segment).
type Run struct {
	Thread
	ID string `json:"run"`
}

// Lane names the subject of one sequential writer in a run: it is the last token of that subject. A
// run uses a lane again for later steps, one writer after the other.
type Lane string

const (
	// LaneMain has the lifecycle events and the model calls of the run's own agent, one after the
	// other, and the terminal record.
	LaneMain Lane = "main"
	// LaneControl has at most one record: the request to cancel.
	LaneControl Lane = "ctl"
	// LaneInterrupts has the interrupts that branches and subagents announce while other parts of
	// the run work.
	LaneInterrupts Lane = "ask"
	// LaneTitle has the model call that writes the title of the thread (Result.Title). Its records may
	// follow the run's terminal record.
	LaneTitle Lane = "title"
	// laneState has marks (mark.go).
	laneState Lane = "state"
)

// MaxToolLanes bounds how many tool calls of one agent write concurrently. It is the number of
// slots t0 to t7.
const MaxToolLanes = 8

// Tool returns the lane of the i-th parallel tool call of the agent that writes to l. The tool
// lanes of the run's own agent are t0 to t7, those of a subagent on s2 are s2t0 to s2t7. After a
// failed call the remaining calls of its turn may use t8 and more. Summaries use t8, too (see
// Summary), but no summary of that agent is written while calls are made.
func (l Lane) Tool(i int) Lane { return l.slot('t', i) }

// Subagent returns the lane of the subagent that works for the i-th tool call of the agent on l: s2
// for a call of the run's own agent, s2s0 within the subagent on s2.
func (l Lane) Subagent(i int) Lane { return l.slot('s', i) }

// slot returns the lane of a tool ('t') or a subagent ('s') below l. The lanes of the run's own
// agent have no prefix.
func (l Lane) slot(kind byte, i int) Lane {
	if l == LaneMain {
		l = ""
	}
	return Lane(fmt.Sprintf("%s%c%d", l, kind, i))
}

// IsSubagentLane reports whether the lane belongs to a subagent or to one of its tools.
func (l Lane) IsSubagentLane() bool { return l != laneState && strings.HasPrefix(string(l), "s") }

// IsAgentLane reports whether an agent writes model calls to the lane: the run's own agent, or a
// subagent. It is false for tools.
func (l Lane) IsAgentLane() bool {
	return l == LaneMain || l.IsSubagentLane() && !strings.Contains(string(l), "t")
}

// proposalPrefix begins the lanes of proposals.
const proposalPrefix = "in-"

// IsProposal reports whether the lane has a proposal. No reader is shown proposals.
func (l Lane) IsProposal() bool { return strings.HasPrefix(string(l), proposalPrefix) }

// IsInternal reports whether no reader is shown the records of the lane: proposals, and the model
// call that writes the title of the thread.
func (l Lane) IsInternal() bool { return l.IsProposal() || l == LaneTitle }

// tokenEncoding is base32 without padding: its letters are valid in subjects, bucket keys and
// Temporal's IDs.
var tokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token returns the form of an ID that subjects and Temporal's IDs use: the ID itself if it
// consists of 1 to 64 letters, digits, "-" and "_", else "~" and 160 bits of its SHA-256. Different
// IDs have different tokens, because no plain ID begins with "~".
func Token(id string) string {
	if isPlain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "~" + tokenEncoding.EncodeToString(sum[:20])
}

// KeyToken is Token for the keys of buckets, which must not contain "~". Different IDs keep different
// tokens.
func KeyToken(id string) string { return strings.Replace(Token(id), "~", "=", 1) }

// isPlain reports whether Token can use an ID as it is.
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

// Identify derives an ID from a run and a place in it, such as a step or a tool call. It is
// deterministic, so all attempts of a step derive the same ID and clients see no duplicates. The
// run ID is part of it, because IDs must be unique in their thread. The parts are separated by NUL,
// which no ID has.
func (r Run) Identify(kind, place string) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.Thread.ID + "\x00" + r.ID + "\x00" + kind + "\x00" + place))
	return kind + "_" + tokenEncoding.EncodeToString(sum[:15])
}

// threadOf returns the subject of the thread (see ThreadSubject) of a subject below it, which may be a
// filter.
func threadOf(subject string) string {
	end := 0
	for range 3 { // the log, the tenant, the thread
		next := strings.IndexByte(subject[end:], '.')
		if next < 0 {
			return subject
		}
		end += next + 1
	}
	return subject[:end-1]
}

// ThreadSubject returns the prefix of the subjects of a thread's records. Append ".>" to filter for
// all of them.
func (l *Log) ThreadSubject(t Thread) string {
	return l.prefix + "." + Token(t.Tenant) + "." + Token(t.ID)
}

// RunSubject returns the prefix of the subjects of a run's records: lanes follow as the last token.
func (l *Log) RunSubject(r Run) string { return l.ThreadSubject(r.Thread) + "." + Token(r.ID) }

// LaneSubject returns the subject of a lane.
func (l *Log) LaneSubject(r Run, lane Lane) string { return l.RunSubject(r) + "." + string(lane) }

// splitSubject takes a record's subject apart without allocating: thread is the prefix that
// ThreadSubject builds, run the run's token. ok is false if the subject has fewer than three
// tokens.
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
