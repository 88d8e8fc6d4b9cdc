package workernode

import (
	"cmp"
	"maps"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/process/version"
	"github.com/perdure/perdure/internal/workers/announce"
)

// aloneName is the name for announcements of a worker without an Identity. There is only one of
// them.
const aloneName = "alone"

// description describes this worker, for its announcement.
func (cfg *Config) description() announce.Worker {
	return announce.Worker{
		Name: cmp.Or(cfg.Identity, aloneName), Version: version.Read().Version, Deployment: cfg.Deployment, BuildID: cfg.BuildID, Queues: cfg.Queues.All(),
	}
}

// names returns the programs that this worker executes and the models that it can call, for its
// announcement.
func (cfg *Config) names() agents.Names {
	if cfg.Queues.ToolsOnly {
		return agents.Names{}
	}
	var names agents.Names
	if cfg.ModelNames != nil {
		names = cfg.ModelNames()
	}
	names.Programs = slices.Collect(maps.Keys(cfg.Programs))
	return names
}

// circuits returns the function that lists the circuits of models, for the announcement.
func circuits(models *admission.Gate) func() []announce.Circuit {
	return func() []announce.Circuit {
		var open []announce.Circuit
		for _, c := range models.Circuits() {
			open = append(open, announce.Circuit{Model: c.Model, State: c.State, Since: c.Since.UTC()})
		}
		return open
	}
}
