package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agents"
)

func (e *environment) validateAgents() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE|DIR…", Short: "Check definitions, without a server",
		Long: "Check definitions of agents, tools, MCP servers and scripts as perdure dev would when it starts. What is wrong is told with its\nfile, line and column; the exit code is 2 then.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var found agents.Folder
			var wrong []error
			for _, name := range args {
				more, err := load(name)
				if err != nil {
					wrong = append(wrong, err)
					continue
				}
				found.Agents, found.Tools = append(found.Agents, more.Agents...), append(found.Tools, more.Tools...)
				found.Servers, found.Scripts = append(found.Servers, more.Servers...), append(found.Scripts, more.Scripts...)
			}
			if err := errors.Join(wrong...); err != nil {
				return e.invalid(cmd, err)
			}
			if e.json {
				return document(cmd.OutOrStdout(), []byte(`{"errors":[]}`))
			}
			return e.done(cmd, "%d agents, %d tools, %d MCP servers and %d scripts are right.", len(found.Agents), len(found.Tools), len(found.Servers), len(found.Scripts))
		},
	}
}

func load(name string) (*agents.Folder, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return agents.LoadDir(name)
	}
	text, err := fileText(name)
	if err != nil {
		return nil, err
	}
	return agents.ParseFile(name, text)
}

// invalid tells all that is wrong.
func (e *environment) invalid(cmd *cobra.Command, err error) error {
	if !e.json {
		return usage(err)
	}
	type mistake struct {
		File   string `json:"file,omitempty"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Key    string `json:"key,omitempty"`
		Detail string `json:"detail"`
	}
	list := []mistake{}
	for _, one := range each(err) {
		var d *agents.DefinitionError
		if errors.As(one, &d) {
			list = append(list, mistake{d.File, d.Line, d.Column, d.Key, d.Reason})
		} else {
			list = append(list, mistake{Detail: one.Error()})
		}
	}
	encoded, err := jsonOf(map[string]any{"errors": list})
	if err == nil {
		err = document(cmd.OutOrStdout(), encoded)
	}
	return errors.Join(err, told(exitUsage))
}

// each takes joined errors apart.
func each(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // only what errors.Join has made
	if !ok {
		return []error{err}
	}
	var list []error
	for _, one := range joined.Unwrap() {
		list = append(list, each(one)...)
	}
	return list
}
