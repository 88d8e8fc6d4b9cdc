package cli

import (
	"fmt"
	"strconv"
	"strings"

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
