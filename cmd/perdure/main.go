// Command perdure runs durable AG-UI agents: "perdure dev" is everything in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(os.Environ()).ExecuteContext(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "perdure:", err)
		os.Exit(1)
	}
}

// command is the whole command line.
func command(environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "perdure",
		Short:         "Durable AG-UI agents",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(devCommand(environ))
	return root
}
