package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// forkThread returns "threads fork".
func (e *environment) forkThread() *cobra.Command {
	var at, to string
	cmd := &cobra.Command{
		Use: "fork THREAD RUN", Short: "Create a thread that begins as another one was at the end of a run, or after a step of it", Args: cobra.ExactArgs(2), ValidArgsFunction: e.completeThreads,
		Long: "Creates a thread with the messages and the state that THREAD had at the end of RUN, or with --at after a step or a turn of it. \"perdure threads forkpoints\" lists the cursors for --at.\n\n" +
			"\"perdure run AGENT --thread FORK\" without a text continues the fork. A pipeline then begins with the step that follows.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			if to == "" {
				to = newID("thread")
			}
			answer, err := c.Fork(cmd.Context(), args[0], args[1], at, to)
			if err != nil {
				return err
			}
			if e.json {
				return document(cmd.OutOrStdout(), answer.JSON)
			}
			fmt.Fprintln(cmd.OutOrStdout(), onTerminal(answer.Value.ThreadID))
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "a cursor of \"perdure threads forkpoints\"; default: the end of the run")
	cmd.Flags().StringVar(&to, "id", "", "the ID of the new thread; default: a random one")
	return cmd
}

// listForkPoints returns "threads forkpoints".
func (e *environment) listForkPoints() *cobra.Command {
	return &cobra.Command{
		Use: "forkpoints THREAD RUN", Short: "List where a run can be forked, in the order of the run", Args: cobra.ExactArgs(2), ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			var answer client.Document[client.Page[client.ForkPoint]]
			if answer, err = c.ForkPoints(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			rows := [][]string{{"CURSOR", "AT", "KIND", "NAME"}}
			for _, p := range answer.Value.Items {
				rows = append(rows, []string{p.Cursor, ago(p.At), p.Kind, p.Name})
			}
			return e.printResult(cmd, answer.JSON, "", rows)
		},
	}
}
