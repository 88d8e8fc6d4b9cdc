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

// Served reports whether a worker of the task queue announces a tool now.
func (b *Board) Served(queue string) bool {
	return len(b.find(func(t Tool) bool { return t.Queue == queue })) > 0
}

// lookUpTimeout bounds how long descriptions of tools may take to come.
const lookUpTimeout = 5 * time.Second

// Offers returns the tools of an MCP server that workers of a task queue have, sorted by the
// server's own names. It fails when no worker announces any. They are to be described to models;
// calls of them belong to the queue.
func (b *Board) Offers(server, queue string) ([]tools.Offer, error) {
	announced := b.find(func(t Tool) bool { return t.Server == server && t.Queue == queue })
	if len(announced) == 0 {
		return nil, fmt.Errorf("announce: no worker of the task queue %q has the server %q", queue, server)
	}
	// While workers are being replaced they may differ: any of them will do, but always the same
	// one.
	slices.SortFunc(announced, func(a, b Tool) int { return strings.Compare(a.Own+"\x00"+a.Spec, b.Own+"\x00"+b.Spec) })
	announced = slices.CompactFunc(announced, func(a, b Tool) bool { return a.Own == b.Own })
	ctx, cancel := context.WithTimeout(b.life, lookUpTimeout)
	defer cancel()
	offers := make([]tools.Offer, len(announced))
	for i, t := range announced {
		described, err := b.described(ctx, t.Spec)
		if err != nil {
			return nil, err
		}
		offers[i] = tools.Offer{Name: t.Own, Tool: described}
	}
	return offers, nil
}

// find lists what workers say now.
func (b *Board) find(wanted func(Tool) bool) []Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []Tool
	for _, n := range b.workers {
		if b.now().Sub(n.heard) >= lasting {
			continue
		}
		for _, t := range n.tools {
			if wanted(t) {
				found = append(found, t)
			}
		}
	}
	return found
}

// described returns the tool with a description.
func (b *Board) described(ctx context.Context, digest string) (tools.Tool, error) {
	if known, ok := b.offers.Load(digest); ok {
		return known.(tools.Tool), nil
	}
	entry, err := b.schemas.Get(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	d := &distant{}
	if err := json.Unmarshal(entry.Value(), &d.spec); err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	guarded, err := tools.Guard(d)
	if err != nil {
		return nil, fmt.Errorf("announce: description: %w", err)
	}
	b.offers.Store(digest, guarded)
	return guarded, nil
}

// distant is a tool that other workers run.
type distant struct{ spec tools.Spec }

func (d *distant) Spec() tools.Spec { return d.spec }

// Call fails: nobody sends a call here.
func (d *distant) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, fmt.Errorf("announce: %s is called by workers of the task queue %q", d.spec.Name, d.spec.TaskQueue)
}
