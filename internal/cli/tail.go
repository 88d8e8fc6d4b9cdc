package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func (e *environment) tailCommand() *cobra.Command {
	var run, after string
	var noFollow bool
	cmd := &cobra.Command{
		Use:   "tail THREAD",
		Short: "Show what happens on a thread, from its history on",
		Long: `Show what happens on a thread: its history, and then run after run until Ctrl-C. With --no-follow it ends behind
the run that is active, and with --run it shows one run to its end; the exit code is that run's then.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			v := e.viewer(cmd, c, false)
			v.tails()
			v.thread, v.after = args[0], after
			ctx := cmd.Context()
			if run != "" {
				err = v.watch(c.Events(ctx, args[0], run, after))
			} else {
				err = v.watch(c.Follow(ctx, args[0], client.Following{After: after, Once: noFollow}))
			}
			if err != nil {
				return v.leftTail(err)
			}
			if v.last.Event == nil {
				return nil // nothing was there to show
			}
			return outcome(v.last)
		},
	}
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "show this run only")
	f.StringVar(&after, "after", "", "go on behind this cursor")
	f.BoolVar(&noFollow, "no-follow", false, "end when nothing goes on any more")
	return cmd
}

// tails shows everything in one place, as it comes.
func (v *viewer) tails() {
	v.live, v.history = true, true
	v.notes = v.answer
}

// leftTail says how to go on where the view was left.
func (v *viewer) leftTail(err error) error {
	if errors.Is(err, context.Canceled) && v.after != "" && v.json == nil {
		v.endLine()
		fmt.Fprintf(v.notices, "Go on with: perdure tail %s --after %s\n", v.thread, v.after)
	}
	return err
}
