package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/client"
)

// agentsCommand returns the group "agents". Without a subcommand it lists agents.
func (e *environment) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agents", Short: "List agents, publish and compare their definitions", Args: cobra.NoArgs}
	list := e.listAgents()
	cmd.RunE = list.RunE
	cmd.AddCommand(list, e.showAgent(), e.validateAgents(), e.putAgents(), e.draftAgents(), e.listRevisions(), e.diffAgent())
	return cmd
}

// listAgents returns "agents list".
func (e *environment) listAgents() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List agents (the default)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			list, err := c.Agents(cmd.Context())
			if err != nil {
				return err
			}
			for _, problem := range list.Value.Problems {
				fmt.Fprintln(cmd.ErrOrStderr(), problem)
			}
			rows := [][]string{{"AGENT", "SCOPE", "MODEL", "REVISION", "DESCRIPTION"}}
			for _, a := range list.Value.Items {
				rows = append(rows, []string{a.Name, string(a.Scope), modelOf(a), shortRevision(a.Revision), a.Description})
			}
			return e.printResult(cmd, list.JSON, "", rows)
		},
	}
}

// modelOf returns the models of an agent, or where a remote agent runs.
func modelOf(a client.Agent) string {
	if a.Remote != "" {
		return "remote: " + a.Remote
	}
	return strings.Join(append([]string{a.Model}, a.FallbackModels...), ", ")
}

// shortRevision returns the first 12 digits of a revision, which suffice to distinguish revisions,
// after the prefix of revisions of tenants.
func shortRevision(revision string) string {
	end := strings.LastIndexByte(revision, '-') + 1 + 12
	return revision[:min(end, len(revision))]
}

// agentCommand is threadCommand for the name of an agent.
func (e *environment) agentCommand(use, short string, run func(cmd *cobra.Command, c *client.Client, agent string) error) *cobra.Command {
	cmd := e.threadCommand(use, short, run)
	cmd.ValidArgsFunction = e.completeAgents
	return cmd
}

// showAgent returns "agents show".
func (e *environment) showAgent() *cobra.Command {
	var revision, scope string
	cmd := e.agentCommand("show AGENT", "Show an agent, or a revision of it in full", func(cmd *cobra.Command, c *client.Client, agent string) error {
		if revision != "" {
			return e.showDefinition(cmd, c, client.Scope(scope), agent, revision)
		}
		a, err := c.Agent(cmd.Context(), client.Scope(scope), agent)
		if err != nil {
			return err
		}
		v := a.Value
		rows := [][]string{
			{"agent", v.Name}, {"scope", string(v.Scope)}, {"description", v.Description}, {"model", modelOf(v)}, {"revision", v.Revision},
			{"tools", strings.Join(v.Tools, ", ")}, {"unavailable", strings.Join(v.UnavailableTools, ", ")}, {"warnings", strings.Join(v.Warnings, "; ")},
		}
		for _, t := range v.Triggers {
			rows = append(rows, []string{"trigger", triggerText(t)})
		}
		return e.printResult(cmd, a.JSON, "", rows)
	})
	cmd.Flags().StringVar(&revision, "revision", "", "show the definition of this revision, as YAML")
	readScope(cmd, &scope)
	return cmd
}

// triggerText returns a trigger as a text: the event, and where and as whom the run starts.
func triggerText(t client.AgentTrigger) string {
	text := t.Event
	if len(t.Match) > 0 {
		if match, err := json.Marshal(t.Match); err == nil {
			text += " with " + string(match)
		}
	}
	text += ", on " + cmp.Or(t.Thread, "a thread of its own") + ", as " + cmp.Or(t.RunAs, "an anonymous caller")
	if t.OnBusy != "" {
		text += ", " + t.OnBusy + " if the thread is busy"
	}
	return text
}

// readScope adds the flag --scope to a command that reads an agent.
func readScope(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", "", "`platform or tenant`: the agent of all tenants, or that of your tenant; default: your tenant's, else the platform's")
	completeWords(cmd, "scope", string(client.ScopePlatform), string(client.ScopeTenant))
}

// showDefinition shows the definition of a revision, as YAML or with --json as JSON.
func (e *environment) showDefinition(cmd *cobra.Command, c *client.Client, scope client.Scope, agent, revision string) error {
	if e.json {
		text, err := c.DefinitionJSON(cmd.Context(), scope, agent, revision)
		if err != nil {
			return err
		}
		return document(cmd.OutOrStdout(), text)
	}
	text, err := c.Definition(cmd.Context(), scope, agent, revision)
	if err != nil {
		return err
	}
	return raw(cmd.OutOrStdout(), text)
}

// raw writes a text unchanged, or safe for a terminal if w is one.
func raw(w io.Writer, text []byte) error {
	if isTerminal(w) {
		text = []byte(onTerminal(string(text)))
	}
	_, err := w.Write(text)
	return err
}

// putAgents returns "agents put". It validates the files before it sends anything, so that mistakes
// are reported with line numbers.
func (e *environment) putAgents() *cobra.Command {
	var p client.Publication
	var scope string
	cmd := &cobra.Command{
		Use: "put FILE…", Short: "Publish the agents that files define",
		Long: `Publish the agents that files define; - is standard input. A file may have several documents, as in the folder of
definitions. If a document of a file is invalid, nothing is published.

The API publishes agents only: workers read tools, MCP servers and scripts from their own folder. The agents are published
one after the other. If the server refuses one, those before it stay published.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Scope = client.Scope(scope)
			return e.sendAgents(cmd, args, p.Expected != "", func(c *client.Client, d *agents.Definition) error {
				return e.putAgent(cmd, c, d, p)
			})
		},
	}
	cmd.Flags().StringVar(&p.Expected, "if-match", "", "publish only if this revision is current; for one agent")
	cmd.Flags().StringVar(&p.Note, "note", "", "what to say about the change in the list of revisions")
	publishingScope(cmd, &scope)
	return cmd
}

// publishingScope adds the flag --scope to a command that publishes agents.
func publishingScope(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", "", "`platform or tenant`: publish for all tenants, the default, or for your tenant only")
	completeWords(cmd, "scope", string(client.ScopePlatform), string(client.ScopeTenant))
}

// sendAgents reads the agents that files define, and calls send for each of them. forOne refuses more
// than one agent.
func (e *environment) sendAgents(cmd *cobra.Command, files []string, forOne bool, send func(c *client.Client, d *agents.Definition) error) error {
	folder, err := readDefinitions(cmd, files)
	if err != nil {
		return usage(err)
	}
	if len(folder.Agents) == 0 {
		return usage(errors.New("the files define no agent"))
	}
	if forOne && len(folder.Agents) > 1 {
		return usage(fmt.Errorf("--if-match is for one agent, and the files define %d", len(folder.Agents)))
	}
	c, err := e.client(cmd)
	if err != nil {
		return err
	}
	if n := len(folder.Tools) + len(folder.Servers) + len(folder.Scripts); n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d tools, MCP servers and scripts are not published: put them into the folder of your workers.\n", n)
	}
	for _, d := range folder.Agents {
		if err := send(c, d); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

// draftAgents returns "agents draft".
func (e *environment) draftAgents() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use: "draft FILE…", Short: "Store the agents that files define as drafts",
		Long: `Store the agents that files define as drafts; - is standard input. A draft is not published: only runs that name its
revision use it, as perdure run --revision does.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.sendAgents(cmd, args, false, func(c *client.Client, d *agents.Definition) error {
				text, err := d.YAML()
				if err != nil {
					return err
				}
				a, err := c.PutDraft(cmd.Context(), client.Scope(scope), d.Name, text)
				if err != nil {
					return err
				}
				return e.printPublished(cmd, a, "%s has the draft %s.")
			})
		},
	}
	publishingScope(cmd, &scope)
	return cmd
}

// readDefinitions reads all files, and joins the mistakes of all. Two agents of the same name are a
// mistake.
func readDefinitions(cmd *cobra.Command, names []string) (*agents.Folder, error) {
	all := &agents.Folder{}
	var problems []error
	fileOf := map[string]string{}
	for _, name := range names {
		text, err := readDefinition(cmd, name)
		if err != nil {
			return nil, err
		}
		folder, err := agents.ParseFile(name, text)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, d := range folder.Agents {
			if first, ok := fileOf[d.Name]; ok {
				problems = append(problems, fmt.Errorf("%s: agent %s is also defined in %s", name, d.Name, first))
			}
			fileOf[d.Name] = name
		}
		all.Join(folder)
	}
	return all, errors.Join(problems...)
}

// putAgent publishes an agent, and prints the result.
func (e *environment) putAgent(cmd *cobra.Command, c *client.Client, d *agents.Definition, p client.Publication) error {
	text, err := d.YAML()
	if err != nil {
		return err
	}
	a, err := c.PutAgent(cmd.Context(), d.Name, text, p)
	if err != nil {
		return err
	}
	return e.printPublished(cmd, a, "%s is now revision %s.")
}

// printPublished prints the warnings about an agent, and its name and revision in the form of format.
func (e *environment) printPublished(cmd *cobra.Command, a client.Document[client.Agent], format string) error {
	if e.json {
		return document(cmd.OutOrStdout(), a.JSON)
	}
	for _, w := range a.Value.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", onTerminal(w))
	}
	return e.printDone(cmd, format, a.Value.Name, a.Value.Revision)
}

// readDefinition reads a file, or standard input for "-".
func readDefinition(cmd *cobra.Command, name string) ([]byte, error) {
	if name != "-" {
		return readFile(name)
	}
	return io.ReadAll(io.LimitReader(cmd.InOrStdin(), agents.MaxFile+1)) // one byte more than Parse accepts, so that it refuses a longer text
}

// readFile reads a file, up to one byte more than Parse accepts.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage(err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	return io.ReadAll(io.LimitReader(f, agents.MaxFile+1))
}

// listRevisions returns "agents revisions".
func (e *environment) listRevisions() *cobra.Command {
	var p client.Paging
	var scope string
	cmd := e.agentCommand("revisions AGENT", "List the revisions of an agent, newest first", func(cmd *cobra.Command, c *client.Client, agent string) error {
		list, err := c.Revisions(cmd.Context(), client.Scope(scope), agent, p)
		if err != nil {
			return err
		}
		rows := [][]string{{"REVISION", "PUBLISHED", "SOURCE", "BY", "CURRENT", "NOTE"}}
		for _, r := range list.Value.Items {
			rows = append(rows, []string{r.Revision, ago(r.PublishedAt), r.Source, r.By, yesOrEmpty(r.Current), r.Note})
		}
		return e.printResult(cmd, list.JSON, list.Value.NextCursor, rows)
	})
	paging(cmd, &p)
	readScope(cmd, &scope)
	return cmd
}

// diffAgent returns "agents diff".
func (e *environment) diffAgent() *cobra.Command {
	var from, scope string
	cmd := &cobra.Command{
		Use: "diff AGENT [REVISION]", Short: "Show the changes of a revision, by default the current one", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: e.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			var revision string
			if len(args) > 1 {
				revision = args[1]
			} else {
				a, err := c.Agent(cmd.Context(), client.Scope(scope), args[0])
				if err != nil {
					return err
				}
				revision = a.Value.Revision
			}
			text, err := c.Diff(cmd.Context(), client.Scope(scope), args[0], revision, from)
			if err != nil {
				return err
			}
			if e.json {
				encoded, err := jsonOf(map[string]string{"revision": revision, "diff": string(text)})
				if err != nil {
					return err
				}
				return document(cmd.OutOrStdout(), encoded)
			}
			return raw(cmd.OutOrStdout(), text)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "compare with this revision; default: the replaced one")
	readScope(cmd, &scope)
	return cmd
}
