package systemroutes

import (
	"time"

	"github.com/perdure/perdure/internal/process/version"
)

// System describes the deployment as one API process sees it.
type System struct {
	version.Info
	// Mode is the name of the program.
	Mode      string    `json:"mode"`
	StartedAt time.Time `json:"startedAt"`
	// Ready is false if one of the checks fails.
	Ready   bool     `json:"ready"`
	Checks  []Check  `json:"checks"`
	Workers []Worker `json:"workers"`
	ModelCalls
	Queues   []TaskQueue `json:"queues"`
	Log      Log         `json:"log"`
	Temporal Temporal    `json:"temporal"`
	Links    Links       `json:"links"`
	Node     Node        `json:"node"`
}

// Temporal describes the server of Temporal. Version is "" if it does not answer.
type Temporal struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"`
}

// Log describes what the log stores. Streams is empty if it does not answer.
type Log struct {
	// ServerVersion is that of the server of NATS to which this process is connected.
	ServerVersion string   `json:"serverVersion,omitempty"`
	Streams       []Stream `json:"streams"`
	// Bytes is what the account of NATS stores on disk. MaxBytes is its limit; missing = it has none.
	Bytes    uint64 `json:"bytes"`
	MaxBytes uint64 `json:"maxBytes,omitempty"`
}

// Stream is a stream of JetStream.
type Stream struct {
	Name     string `json:"name"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	MaxBytes uint64 `json:"maxBytes,omitempty"`
	// Replicas are missing if NATS is no cluster.
	Replicas []Replica `json:"replicas,omitempty"`
}

// Replica is a server of NATS with a copy of a stream.
type Replica struct {
	Server  string `json:"server"`
	Leader  bool   `json:"leader,omitempty"`
	Current bool   `json:"current"` // the copy is complete, and its server reachable
}

// TaskQueue is a task queue of Temporal with one kind of tasks.
type TaskQueue struct {
	Name string `json:"name"`
	// Tasks is "workflow" or "activity".
	Tasks string `json:"tasks"`
	// Pollers is the number of workers that have polled the queue within the last minutes.
	Pollers int `json:"pollers"`
	// Backlog is about how many tasks wait for a worker, and BacklogSeconds how long the oldest one
	// has waited. Tasks that a worker takes at once are not in the backlog.
	Backlog        int64   `json:"backlog"`
	BacklogSeconds float64 `json:"backlogSeconds"`
}
