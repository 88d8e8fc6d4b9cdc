package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// systemCommand returns the command "system".
func (e *environment) systemCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "system", Short: "Show workers, task queues, the log and the checks of the server", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		system, err := c.System(cmd.Context())
		if err != nil {
			return err
		}
		return e.printResult(cmd, system.JSON, "", systemRows(system.Value))
	}
	return cmd
}

// systemRows returns the table of a system: kind, name, and what there is to say.
func systemRows(s client.System) [][]string {
	rows := [][]string{
		{"server", s.Mode, s.Version + ", since " + ago(s.StartedAt)},
		{"Temporal", s.Temporal.Address, s.Temporal.Version + ", namespace " + s.Temporal.Namespace},
	}
	for _, check := range s.Checks {
		state := "ready"
		if !check.Ready {
			state = "not ready: " + check.Detail
		}
		rows = append(rows, []string{"check", check.Name, state})
	}
	for _, w := range s.Workers {
		version := w.Version
		if w.BuildID != "" {
			version += ", build " + w.Deployment + " " + w.BuildID
		}
		rows = append(rows, []string{"worker", w.Name, fmt.Sprintf("%s, queues %s, %d tools, seen %s", version, strings.Join(w.Queues, " "), len(w.Tools), ago(w.SeenAt))})
	}
	rows = append(rows, modelRows(s)...)
	for _, q := range s.Queues {
		rows = append(rows, []string{"queue", q.Name, fmt.Sprintf("%s tasks: %d pollers, backlog %d, oldest %.0f s", q.Tasks, q.Pollers, q.Backlog, q.BacklogSeconds)})
	}
	for _, stream := range s.Log.Streams {
		text := fmt.Sprintf("%d messages, %d bytes", stream.Messages, stream.Bytes)
		if stream.MaxBytes > 0 {
			text += " of " + strconv.FormatInt(stream.MaxBytes, 10)
		}
		for _, r := range stream.Replicas {
			if !r.Current {
				text += ", no current copy on " + r.Server
			}
		}
		rows = append(rows, []string{"stream", stream.Name, text})
	}
	return rows
}

// modelRows returns the rows of models that workers do not call now, and of providers with a limit.
func modelRows(s client.System) [][]string {
	var rows [][]string
	for _, m := range s.Models {
		if left := time.Until(m.PausedUntil); left > 0 {
			rows = append(rows, []string{"model", m.Model, fmt.Sprintf("paused by its provider for %s (Retry-After)", left.Round(time.Second))})
		}
		for _, c := range m.Circuits {
			rows = append(rows, []string{"model", m.Model, fmt.Sprintf("circuit %s in %s, opened %s ago", c.State, c.Worker, ago(c.Since))})
		}
	}
	for _, p := range s.Providers {
		rows = append(rows, []string{"provider", p.Provider, fmt.Sprintf("%d active calls, %d wait for their turn", p.Calls, p.Waiting)})
	}
	return rows
}
