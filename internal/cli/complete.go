package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// completionTimeout bounds a completion, for which the user waits after pressing Tab.
const completionTimeout = 2 * time.Second

// fetchCompletions requests completions from the server.
type fetchCompletions func(context.Context, *client.Client) ([]cobra.Completion, error)

// complete returns shell completions for the first argument of a command. fetch requests them from
// the server. If the server does not answer in time, there are none.
func (e *environment) complete(cmd *cobra.Command, args []string, fetch fetchCompletions) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := e.newClient(client.Config{RetryWindow: -1})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionTimeout)
	defer cancel()
	offers, err := fetch(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag completes the value of a flag with completions for an argument.
func completeFlag(cmd *cobra.Command, flag string, offers cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offers(cmd, nil, begun)
	})
}

// completeWords completes the value of a flag with fixed words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeAgents offers the names of agents.
func (e *environment) completeAgents(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.complete(cmd, args, func(ctx context.Context, c *client.Client) (offers []cobra.Completion, err error) {
		list, err := c.Agents(ctx)
		for _, a := range list.Value.Items {
			offers = append(offers, cobra.CompletionWithDesc(a.Name, oneLine(a.Description, 60)))
		}
		return offers, err
	})
}

// completeThreads offers the IDs of the threads that were updated last.
func (e *environment) completeThreads(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.complete(cmd, args, func(ctx context.Context, c *client.Client) (offers []cobra.Completion, err error) {
		list, err := c.Threads(ctx, client.ThreadFilter{})
		for _, t := range list.Value.Items {
			offers = append(offers, cobra.CompletionWithDesc(t.ThreadID, t.Agent+", "+t.Status))
		}
		return offers, err
	})
}

// completeApprovals offers the IDs of open approvals. Commands that decide take several of them.
func (e *environment) completeApprovals(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.complete(cmd, nil, func(ctx context.Context, c *client.Client) (offers []cobra.Completion, err error) {
		list, err := c.Approvals(ctx, client.ApprovalFilter{}, client.Paging{})
		for _, a := range list.Value.Items {
			offers = append(offers, cobra.CompletionWithDesc(a.ID, oneLine(questionText(a), 60)))
		}
		return offers, err
	})
}

// completeWaits offers the IDs of open waits. Commands that decide take several of them.
func (e *environment) completeWaits(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.complete(cmd, nil, func(ctx context.Context, c *client.Client) (offers []cobra.Completion, err error) {
		list, err := c.Waits(ctx, client.WaitFilter{}, client.Paging{})
		for _, w := range list.Value.Items {
			offers = append(offers, cobra.CompletionWithDesc(w.ID, oneLine(describeWait(&w), 60)))
		}
		return offers, err
	})
}

// completeSchedules offers the IDs of schedules.
func (e *environment) completeSchedules(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.complete(cmd, args, func(ctx context.Context, c *client.Client) (offers []cobra.Completion, err error) {
		list, err := c.Schedules(ctx, client.Paging{})
		for _, s := range list.Value.Items {
			offers = append(offers, cobra.CompletionWithDesc(s.ID, s.Agent))
		}
		return offers, err
	})
}
