package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/internal/process/workernode"
	"github.com/perdure/perdure/internal/workers/toolset"
)

// reload reads the folder of definitions again, and puts the changes into effect. It prints a line
// for each change, or what is wrong; then all former definitions stay. Only the goroutine of the
// watch calls it.
func (p *devProcess) reload(ctx context.Context, out io.Writer) {
	changes, err := p.applyFolder(ctx)
	if ctx.Err() != nil {
		return
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	p.directory.Store(&agentroutes.Directory{Agents: p.folder.Agents, Problem: problem})
	for _, change := range changes {
		fmt.Fprintln(out, change)
	}
	switch {
	case err == nil:
		if p.problem != "" && len(changes) == 0 {
			fmt.Fprintln(out, "The definitions are valid again. Nothing has changed.")
		}
	case errors.As(err, new(*missingFolderError)):
		if problem != p.problem { // every event above the missing folder leads here
			fmt.Fprintf(out, "%s. The published agents stay.\n", problem)
		}
	default:
		fmt.Fprintf(out, "%s\nThe former definitions stay until this is corrected.\n", problem)
	}
	p.problem = problem
}

// applyFolder reads the folder, and puts the difference to the former definitions into effect. It
// returns a line for each change, also for those before an error.
func (p *devProcess) applyFolder(ctx context.Context) (changes []string, err error) {
	folder, err := loadFolder(p.options.agents)
	if err != nil {
		return nil, err
	}
	if err := p.checkNames(ctx, folder); err != nil {
		return nil, err
	}
	change, err := p.applyTools(ctx, folder)
	if err != nil {
		return nil, err
	}
	if change != "" {
		changes = append(changes, change)
	}
	p.names.Store(new(folder.Names()))
	before := map[string]string{}
	for _, d := range p.folder.Agents {
		before[d.Name] = d.Revision()
	}
	for _, d := range folder.Agents {
		if before[d.Name] != d.Revision() {
			change, err := p.publish(ctx, d)
			if err != nil {
				return changes, err
			}
			changes = append(changes, change)
		}
		delete(before, d.Name)
	}
	for _, d := range p.folder.Agents {
		if _, isGone := before[d.Name]; isGone {
			changes = append(changes, d.Name+" stays published, although no file defines it")
		}
	}
	p.folder = folder
	return changes, nil
}

// publish publishes a changed definition, and returns a line about the result.
func (p *devProcess) publish(ctx context.Context, d *agents.Definition) (change string, err error) {
	revision, err := p.api.Publish(ctx, d, p.config.ForceAgents)
	if errors.Is(err, catalog.ErrKept) {
		return d.Name + " is not published, because another definition was published over HTTP: --agents-force publishes the file", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("published %s, revision %.12s", d.Name, revision), nil
}

// applyTools replaces the tools and the worker, if the tools, MCP servers or scripts of the folder
// differ from those of the worker. Temporal then continues active runs on the new worker. It
// returns a line about the change; "" = there is none.
func (p *devProcess) applyTools(ctx context.Context, folder *agents.Folder) (change string, err error) {
	declared, err := declarations(folder)
	if err != nil {
		return "", err
	}
	if declared == p.declared {
		return "", p.tools.CheckClashes(folder.Agents)
	}
	tools, err := p.openTools(folder)
	if err != nil {
		return "", err
	}
	former := p.tools
	p.tools, p.declared = tools, declared
	defer former.Close()
	if p.options.noWorker {
		return "The tools, MCP servers or scripts have changed: restart your worker", nil
	}
	if p.worker != nil {
		p.worker.Stop(context.WithoutCancel(ctx))
	}
	if p.worker, err = workernode.Start(ctx, p.workerConfig(folder)); err != nil {
		p.declared = "" // the next change tries again
		return "", fmt.Errorf("no worker runs: %w", err)
	}
	return "restarted the worker with the changed tools, MCP servers and scripts", nil
}

// openTools opens the tools of a folder. The caller closes them.
func (p *devProcess) openTools(folder *agents.Folder) (*toolset.Set, error) {
	return toolset.Open(toolset.Config{Folder: folder, Getenv: p.config.Getenv, Signer: p.signer, AllowPrivate: p.options.allowPrivateHosts, Logger: p.logger})
}
