package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// holdCommand returns the group "hold". Without a subcommand it shows a hold.
func (e *environment) holdCommand() *cobra.Command {
	const what = " [THREAD]"
	show := e.holdAction("show"+what, "Show the legal hold on a thread, or on the tenant (the default)", func(cmd *cobra.Command, c *client.Client, thread string) error {
		answer, err := c.Hold(cmd.Context(), thread)
		if err != nil {
			return err
		}
		return e.printHold(cmd, answer)
	})
	var reason string
	set := e.holdAction("set"+what, "Set a legal hold on a thread, or on the tenant", func(cmd *cobra.Command, c *client.Client, thread string) error {
		answer, err := c.SetHold(cmd.Context(), thread, reason)
		if err != nil {
			return err
		}
		return e.printHold(cmd, answer)
	})
	set.Flags().StringVar(&reason, "reason", "", "why, at most 1000 bytes: a hold must have one")
	release := e.holdAction("release"+what, "Release the legal hold on a thread, or on the tenant", func(cmd *cobra.Command, c *client.Client, thread string) error {
		if err := c.ReleaseHold(cmd.Context(), thread); err != nil {
			return err
		}
		if thread == "" {
			return e.printDone(cmd, "The hold on the tenant is released.")
		}
		return e.printDone(cmd, "The hold on %s is released.", thread)
	})
	cmd := &cobra.Command{Use: "hold", Short: "Show, set and release legal holds, which forbid deletions", Args: cobra.NoArgs, RunE: show.RunE}
	cmd.AddCommand(show, set, release)
	return cmd
}

// holdAction returns a command with the optional ID of a thread.
func (e *environment) holdAction(use, short string, run func(*cobra.Command, *client.Client, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.MaximumNArgs(1), ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			return run(cmd, c, strings.Join(args, ""))
		},
	}
}

// printHold prints a hold.
func (e *environment) printHold(cmd *cobra.Command, answer client.Document[client.Hold]) error {
	rows := [][]string{{"SET", "BY", "REASON"}, {ago(answer.Value.At), answer.Value.By, answer.Value.Reason}}
	return e.printResult(cmd, answer.JSON, "", rows)
}
