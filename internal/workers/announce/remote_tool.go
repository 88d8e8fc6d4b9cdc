package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/tools"
)

// This file describes MCP servers that other workers have: a worker without the server offers the
// server's tools to models, and schedules their calls on the other workers' task queue.

// Served reports whether a worker announces a tool on a task queue.
func (b *Board) Served(queue string) bool {
	return len(b.find(func(t Tool) bool { return t.Queue == queue })) > 0
}

// lookUpTimeout bounds the reads of descriptions in one call of Offers.
const lookUpTimeout = 5 * time.Second

// Offers returns the tools of an MCP server that workers of a task queue announce, sorted by the
// server's own names. Models may be offered these tools; only workers of that queue can call them.
// Offers blocks for up to lookUpTimeout. It fails if no worker announces a tool of the server.
func (b *Board) Offers(server, queue string) ([]tools.Offer, error) {
	announced := b.find(func(t Tool) bool { return t.Server == server && t.Queue == queue })
	if len(announced) == 0 {
		return nil, fmt.Errorf("announce: no worker of the task queue %q has the server %q", queue, server)
	}
	// While workers are replaced, their descriptions of a tool may differ. Offers takes the first
	// in the order of digests, so that repeated calls return the same one.
	slices.SortFunc(announced, func(a, b Tool) int { return strings.Compare(a.Own+"\x00"+a.Spec, b.Own+"\x00"+b.Spec) })
	announced = slices.CompactFunc(announced, func(a, b Tool) bool { return a.Own == b.Own })
	ctx, cancel := context.WithTimeout(b.lifetime, lookUpTimeout)
	defer cancel()
	offers := make([]tools.Offer, len(announced))
	for i, t := range announced {
		described, err := b.describedTool(ctx, t.Spec)
		if err != nil {
			return nil, err
		}
		offers[i] = tools.Offer{Name: t.Own, Tool: described}
	}
	return offers, nil
}

// find lists the announced tools for which match returns true, once for each worker. It ignores
// announcements that have expired.
func (b *Board) find(match func(Tool) bool) []Tool {
	var found []Tool
	for _, n := range b.current() {
		for _, t := range n.Tools {
			if match(t) {
				found = append(found, t)
			}
		}
	}
	return found
}

// describedTool returns the tool with the description of a digest. The tool only describes itself:
// its Call fails.
func (b *Board) describedTool(ctx context.Context, digest string) (tools.Tool, error) {
	if cached, ok := b.offers.Load(digest); ok {
		return cached.(tools.Tool), nil
	}
	entry, err := b.schemas.Get(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	t := &remoteTool{}
	if err := json.Unmarshal(entry.Value(), &t.spec); err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	guarded, err := tools.Guard(t)
	if err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	b.offers.Store(digest, guarded)
	return guarded, nil
}

// remoteTool is a tool that workers of another task queue call.
type remoteTool struct{ spec tools.Spec }

// Spec implements [tools.Tool].
func (t *remoteTool) Spec() tools.Spec { return t.spec }

// Call implements [tools.Tool]. It always fails: the workflow schedules calls on the tool's task
// queue.
func (t *remoteTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, fmt.Errorf("announce: %s is called by workers of the task queue %q", t.spec.Name, t.spec.TaskQueue)
}
