// Command perdure runs durable AG-UI agents: "perdure dev" is everything in one process, the other
// commands ask a node that runs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/process/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends the process, whatever it does
	os.Exit(cli.Execute(ctx, command(os.Environ())))
}

// command returns the whole command line.
func command(environ []string) *cobra.Command {
	root := &cobra.Command{Use: "perdure", Short: "Durable AG-UI agents", Version: version.Read().Version}
	root.SetVersionTemplate(version.Read().Text("perdure"))
	root.AddCommand(devCommand(environ))
	root.AddCommand(cli.Commands(environ)...)
	return root
}
