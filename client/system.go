package client

import (
	"context"
	"time"
)

// System is the state of a deployment, as one API process sees it.
type System struct {
	Version   string    `json:"version"`
	Revision  string    `json:"revision"` // commit
	Mode      string    `json:"mode"`     // name of the program
	StartedAt time.Time `json:"startedAt"`
	// Ready is false if one of the checks fails.
	Ready   bool           `json:"ready"`
	Checks  []SystemCheck  `json:"checks"`
	Workers []SystemWorker `json:"workers"`
	// Models are those that some workers do not call now, and Providers those with a limit and calls.
	Models    []SystemModel    `json:"models"`
	Providers []SystemProvider `json:"providers"`
	Queues    []TaskQueue      `json:"queues"`
	Log       SystemLog        `json:"log"`
	Temporal  SystemTemporal   `json:"temporal"`
}

// SystemCheck is the result of a readiness check. Detail tells why it fails.
type SystemCheck struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Detail string `json:"detail"`
}

// SystemWorker is a worker that announces itself.
type SystemWorker struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Deployment string    `json:"deployment"`
	BuildID    string    `json:"buildId"`
	Queues     []string  `json:"queues"`
	Tools      []string  `json:"tools"`
	Programs   []string  `json:"programs"`
	SeenAt     time.Time `json:"seenAt"` // of the last announcement
}

// SystemModel is a model that some workers do not call now. PausedUntil is when its provider wants
// calls again (Retry-After); zero = it wants them.
type SystemModel struct {
	Model       string          `json:"model"` // provider/model
	Circuits    []SystemCircuit `json:"circuits"`
	PausedUntil time.Time       `json:"pausedUntil"`
}

// SystemCircuit is the open circuit of a model in a worker. State is open, or half-open while the worker
// makes a single call.
type SystemCircuit struct {
	Worker string    `json:"worker"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"` // when it opened
}

// SystemProvider is a model provider with a limit, and the calls of all workers: the active ones, and
// those that wait for their turn.
type SystemProvider struct {
	Provider string `json:"provider"`
	Calls    int    `json:"calls"`
	Waiting  int    `json:"waiting"`
}

// TaskQueue is a task queue of Temporal with one kind of tasks: workflow or activity.
type TaskQueue struct {
	Name           string  `json:"name"`
	Tasks          string  `json:"tasks"`
	Pollers        int     `json:"pollers"`
	Backlog        int64   `json:"backlog"`        // tasks that wait for a worker
	BacklogSeconds float64 `json:"backlogSeconds"` // age of the oldest one
}

// SystemLog is what the log stores. Bytes is what the NATS account stores; MaxBytes = 0 means that it
// has no limit.
type SystemLog struct {
	ServerVersion string         `json:"serverVersion"`
	Streams       []SystemStream `json:"streams"`
	Bytes         int64          `json:"bytes"`
	MaxBytes      int64          `json:"maxBytes"`
}

// SystemStream is a stream of JetStream. MaxBytes = 0 means that it has no limit.
type SystemStream struct {
	Name     string          `json:"name"`
	Messages int64           `json:"messages"`
	Bytes    int64           `json:"bytes"`
	MaxBytes int64           `json:"maxBytes"`
	Replicas []SystemReplica `json:"replicas"` // empty = NATS is no cluster
}

// SystemReplica is a server of NATS with a copy of a stream.
type SystemReplica struct {
	Server  string `json:"server"`
	Leader  bool   `json:"leader"`
	Current bool   `json:"current"`
}

// SystemTemporal is the server of Temporal. Version is "" if it does not answer.
type SystemTemporal struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	Version   string `json:"version"`
}

// System returns the state of the deployment. Only administrators of the platform may read it.
func (c *Client) System(ctx context.Context) (Document[System], error) {
	return document[System](ctx, c, get("/v1/system", nil))
}
