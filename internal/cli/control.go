package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// cancelCommand returns "cancel". Without a run it cancels the last run of the thread, and reports
// if that one has ended or waits.
func (e *environment) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel THREAD [RUN]", Short: "Cancel a run, by default the active one",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: e.completeThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			var run string
			text := "is being cancelled."
			if len(args) > 1 {
				run = args[1]
			} else {
				t, err := c.Thread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				run = t.Value.RunID
				switch t.Value.Status {
				case "waiting":
					text = "waits for decisions: answer or reject them."
					if wait := firstWait(t.Value); wait != nil {
						text = oneLine(describeWait(wait), maxQuotedChars) + ". To end the wait: perdure waits cancel " + wait.ID
					}
				case "idle", "failed":
					text = "has ended."
				}
			}
			if err := c.Cancel(cmd.Context(), args[0], run, reason); err != nil {
				return err
			}
			return e.printDone(cmd, "%s %s", run, text)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which the log stores")
	return cmd
}

// firstWait returns the first wait of a thread that waits only for times and events; nil = it also waits for
// people or its client.
func firstWait(t client.Thread) *client.Wait {
	if t.Waiting == nil || len(t.Waiting.ToolCallIDs) > 0 {
		return nil
	}
	var first *client.Wait
	for _, i := range t.Waiting.Interrupts {
		w := client.WaitOf(i)
		if w == nil {
			return nil
		}
		if first == nil {
			first = w
		}
	}
	return first
}

// steerCommand returns "steer".
func (e *environment) steerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "steer THREAD TEXT", Short: "Send a message to the active run", Args: cobra.ExactArgs(2), ValidArgsFunction: e.completeThreads,
		Long: "Send a message to the active run: the next model call receives it. If TEXT is -, it is read from standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := textArgument(cmd, args[1])
			if err != nil {
				return err
			}
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			steered, err := c.Steer(cmd.Context(), args[0], userMessage(newID("msg"), text))
			if err != nil {
				return err
			}
			if e.json {
				return document(cmd.OutOrStdout(), steered.JSON)
			}
			return e.printDone(cmd, "%s has received the message.", steered.Value.RunID)
		},
	}
}

// pauseCommand returns "pause".
func (e *environment) pauseCommand() *cobra.Command {
	return e.threadCommand("pause THREAD", "Pause the active run before its next step", func(cmd *cobra.Command, c *client.Client, thread string) error {
		if err := c.Pause(cmd.Context(), thread); err != nil {
			return err
		}
		return e.printDone(cmd, "%s pauses before its next step.", thread)
	})
}

// resumeCommand returns "resume".
func (e *environment) resumeCommand() *cobra.Command {
	return e.threadCommand("resume THREAD", "Resume a paused run", func(cmd *cobra.Command, c *client.Client, thread string) error {
		if err := c.Resume(cmd.Context(), thread); err != nil {
			return err
		}
		return e.printDone(cmd, "%s continues.", thread)
	})
}
