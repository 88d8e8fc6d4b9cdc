package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// tailCommand returns "tail".
func (e *environment) tailCommand() *cobra.Command {
	var run, after string
	var noFollow bool
	cmd := &cobra.Command{
		Use:   "tail THREAD",
		Short: "Show a thread and follow it",
		Long: `Show the history of a thread, and then run after run until Ctrl-C. With --no-follow, the command ends after the active
run. With --run, it shows one run to its end, and exits with the code of the run.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			v := e.viewer(cmd, c, false)
			v.showHistory()
			v.thread, v.after = args[0], after
			ctx := cmd.Context()
			if run != "" {
				err = v.watch(c.Events(ctx, args[0], run, after))
			} else {
				err = v.watch(c.Follow(ctx, args[0], client.FollowOptions{After: after, Once: noFollow}))
			}
			if err != nil {
				return v.printTailContinuation(err)
			}
			if v.last.Event == nil {
				return nil // the thread has no runs
			}
			return outcomeError(v.last)
		},
	}
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "show only this run")
	f.StringVar(&after, "after", "", "continue after this cursor")
	f.BoolVar(&noFollow, "no-follow", false, "end when no run is active")
	return cmd
}

// showHistory makes the viewer show the history, and write answers and notices to one page, in the
// order of the events.
func (v *viewer) showHistory() {
	v.live, v.history = true, true
	v.notes, v.failures = v.answer, v.answer
}

// printTailContinuation prints how to continue after Ctrl-C. It returns err.
func (v *viewer) printTailContinuation(err error) error {
	if errors.Is(err, context.Canceled) && v.after != "" && v.json == nil {
		v.endLine()
		fmt.Fprintf(v.notices, "Continue with: perdure tail %s --after %s\n", v.thread, v.after)
	}
	return err
}
