package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agents"
)

// validateAgents returns "agents validate". It needs no server, except with --url.
func (e *environment) validateAgents() *cobra.Command {
	var known []string
	cmd := &cobra.Command{
		Use: "validate FILE|DIR…", Short: "Check definitions without a server",
		Long: `Check definitions of agents, tools, MCP servers and scripts, as perdure dev does when it starts. The command prints each
error with its file, line and column. If there are errors, it ends with exit code 2.

Tools, agents, MCP servers, model providers and scripts must be defined in the given files, in files of the same directory,
or built in. With --url, the agents of the server and their tools are known, too. Name tools and programs in Go with --known.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := &agents.Folder{}
			names := agents.BuiltIn().With(agents.Names{Others: known})
			var problems []error
			for _, name := range args {
				loaded, err := load(name)
				if err != nil {
					problems = append(problems, err)
					continue
				}
				folder.Join(loaded)
				if info, err := os.Stat(name); err == nil && !info.IsDir() {
					names = names.With(agents.NamesIn(filepath.Dir(name)))
				}
			}
			if e.url != "" {
				published, err := e.publishedNames(cmd)
				if err != nil {
					return err
				}
				names = names.With(published)
			}
			if len(problems) == 0 { // an unreadable file may define the names that others use
				problems = append(problems, folder.CheckNames(names))
			}
			if err := errors.Join(problems...); err != nil {
				return e.invalid(cmd, err)
			}
			if e.json {
				return document(cmd.OutOrStdout(), []byte(`{"errors":[]}`))
			}
			return e.printDone(cmd, "%d agents, %d tools, %d MCP servers and %d scripts are valid.", len(folder.Agents), len(folder.Tools), len(folder.Servers), len(folder.Scripts))
		},
	}
	cmd.Flags().StringSliceVar(&known, "known", nil, "names, or patterns with *, that another worker knows; may be repeated")
	return cmd
}

// publishedNames returns the names of the server's agents, and of those of their tools that workers
// announce.
func (e *environment) publishedNames(cmd *cobra.Command) (agents.Names, error) {
	c, err := e.client(cmd)
	if err != nil {
		return agents.Names{}, err
	}
	list, err := c.Agents(cmd.Context())
	if err != nil {
		return agents.Names{}, err
	}
	var names agents.Names
	for _, a := range list.Value.Items {
		names.Agents = append(names.Agents, a.Name)
		for _, tool := range a.Tools {
			if !slices.Contains(a.UnavailableTools, tool) && !strings.ContainsAny(tool, ":*") {
				names.Tools = append(names.Tools, tool)
			}
		}
	}
	return names, nil
}

// load reads the definitions of a file or a folder.
func load(name string) (*agents.Folder, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return agents.LoadDir(name)
	}
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return agents.ParseFile(name, text)
}

// invalid reports all mistakes, as text or JSON, and returns the error for exitUsage.
func (e *environment) invalid(cmd *cobra.Command, err error) error {
	if !e.json {
		return usage(err)
	}
	type mistake struct {
		File    string `json:"file,omitempty"`
		Line    int    `json:"line,omitempty"`
		Column  int    `json:"column,omitempty"`
		Key     string `json:"key,omitempty"`
		Pointer string `json:"pointer,omitempty"`
		Detail  string `json:"detail"`
	}
	list := []mistake{}
	for _, mistakeErr := range joinedErrors(err) {
		var d *agents.DefinitionError
		if errors.As(mistakeErr, &d) {
			list = append(list, mistake{d.File, d.Line, d.Column, d.Key, d.Pointer(), d.Reason})
		} else {
			list = append(list, mistake{Detail: mistakeErr.Error()})
		}
	}
	encoded, err := jsonOf(map[string]any{"errors": list})
	if err == nil {
		err = document(cmd.OutOrStdout(), encoded)
	}
	return errors.Join(err, exitWith(exitUsage))
}

// joinedErrors returns the errors that errors.Join has joined, at any depth.
func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // only the type of errors.Join
	if !ok {
		return []error{err}
	}
	var list []error
	for _, inner := range joined.Unwrap() {
		list = append(list, joinedErrors(inner)...)
	}
	return list
}
