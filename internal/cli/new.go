package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/starter"
)

// newCommand returns the group "new". Its commands do not use a server.
func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new", Short: "Create the files of an agent, a tool or a chat, which work as they are",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name what to create: agent, tool or chat")
			}
			return fmt.Errorf("unknown kind %q: the kinds are agent, tool and chat", args[0])
		},
		Run: func(*cobra.Command, []string) {}, // cobra calls Args only for a command that runs
	}
	cmd.AddCommand(newAgent(), newTool(), newChat())
	return cmd
}

// newAgent returns "new agent".
func newAgent() *cobra.Command {
	return &cobra.Command{
		Use: "agent NAME [FOLDER]", Short: "Create an agent in a folder, by default agents", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := starter.Agent(args[0])
			if err != nil {
				return usage(err)
			}
			folder := optionalArgument(args, 1, "agents")
			return writeStarter(cmd, folder, files, devOf(folder), fmt.Sprintf("perdure run %s \"What is 12*7, and what time is it?\"", args[0]))
		},
	}
}

// newTool returns "new tool".
func newTool() *cobra.Command {
	return &cobra.Command{
		Use: "tool NAME [FOLDER]", Short: "Create an HTTP tool in a folder, by default agents, with its program and an agent that uses it", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := starter.Tool(args[0])
			if err != nil {
				return usage(err)
			}
			folder := optionalArgument(args, 1, "agents")
			return writeStarter(cmd, folder, files,
				"node "+filepath.Join(folder, args[0]+".mjs"), devOf(folder), fmt.Sprintf("perdure run %s \"Where is A-1001?\"", args[0]))
		},
	}
}

// newChat returns "new chat".
func newChat() *cobra.Command {
	return &cobra.Command{
		Use: "chat [FOLDER]", Short: "Create a page in React that chats with agents, in a folder, by default chat", Args: cobra.MaximumNArgs(1),
		Long: `Create a page in React that chats with agents, in a folder, by default chat. The page is built with Vite, and needs Node
20.19 or newer. The folder also gets the npm package of @perdure/client that belongs to this version of perdure.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := starter.Chat()
			if err != nil {
				return err
			}
			folder := optionalArgument(args, 0, "chat")
			return writeStarter(cmd, folder, files, "cd "+folder, "npm install", "npm run dev")
		},
	}
}

// optionalArgument returns an argument, or a default if the command line has fewer.
func optionalArgument(args []string, index int, otherwise string) string {
	if index < len(args) {
		return args[index]
	}
	return otherwise
}

// devOf returns the command that serves the definitions of a folder.
func devOf(folder string) string {
	if folder == "agents" {
		return "perdure dev"
	}
	return "perdure dev --agents " + folder
}

// writeStarter writes files, and prints their paths and the next commands.
func writeStarter(cmd *cobra.Command, folder string, files []starter.File, next ...string) error {
	paths, err := starter.Write(folder, files)
	if err != nil {
		return usage(err)
	}
	for _, path := range paths {
		fmt.Fprintln(cmd.OutOrStdout(), "created", path)
	}
	fmt.Fprintln(cmd.OutOrStdout(), "\nNext:")
	for _, command := range next {
		fmt.Fprintln(cmd.OutOrStdout(), "  "+command)
	}
	return nil
}
