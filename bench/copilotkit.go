package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// copilotkitPackages is the directory of CopilotKit's packages in the measured module.
const copilotkitPackages = "e2e/node/copilotkit"

// hasCopilotKit reports whether CopilotKit's runtime can start: it needs Node and installed packages.
func hasCopilotKit(root string) bool {
	_, err := exec.LookPath("node")
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(root, copilotkitPackages, "node_modules", "@copilotkit", "runtime"))
	return err == nil
}

// startCopilotKit starts CopilotKit's runtime with one agent for each pace that the phases use.
func startCopilotKit(ctx context.Context, e *environment) (*running, error) {
	env := append(e.modelEnv(), "COPILOTKIT_TELEMETRY_DISABLED=true", "NODE_ENV=production")
	args := []string{filepath.Join(e.root, "bench", "copilotkit.mjs"), filepath.Join(e.root, copilotkitPackages)}
	for _, p := range []pace{instant, paced, lasting} {
		args = append(args, string(p))
	}
	p, base, err := spawnRole(ctx, e.dir, "copilotkit", env, "node", args...)
	if err != nil {
		return nil, err
	}
	t := agentTarget(base)
	t.path = func(p pace) string { return "/v1/agent/" + string(p) + "/run" }
	return &running{target: t, processes: []*process{p}}, nil
}

// withoutCopilotKit removes CopilotKit's runtime from the plan if it cannot start.
func (b *bench) withoutCopilotKit() {
	i := slices.Index(b.plan.Systems, "copilotkit")
	if i < 0 || hasCopilotKit(b.this.root) {
		return
	}
	b.tell("CopilotKit's runtime is not measured: run npm --prefix %s ci", copilotkitPackages)
	b.plan.Systems = slices.Delete(b.plan.Systems, i, i+1)
}
