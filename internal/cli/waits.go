package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// waitsCommand returns the group "waits". Without a subcommand it lists open waits.
func (e *environment) waitsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "waits", Short: "List, continue and cancel waits of runs for a time or an event", Args: cobra.NoArgs}
	list := e.listWaits()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.continueWaits(), e.cancelWaits())
	return cmd
}

// listWaits returns "waits list".
func (e *environment) listWaits() *cobra.Command {
	var f client.WaitFilter
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List open waits, those that end first at the beginning (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		list, err := c.Waits(cmd.Context(), f, p)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "WAITS FOR", "UNTIL", "AGENT", "THREAD"}}
		for _, w := range list.Value.Items {
			rows = append(rows, []string{w.ID, describeAwaited(&w), localTime(w.Until), w.Agent, w.ThreadID})
		}
		return e.printResult(cmd, list.JSON, list.Value.NextCursor, rows)
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Kind, "kind", "", "only waits for this: timer or event")
	flags.StringVar(&f.Agent, "agent", "", "only those of this agent")
	flags.StringVar(&f.Thread, "thread", "", "only those of this thread")
	flags.StringVar(&f.Event, "event", "", "only those for events of this type")
	paging(cmd, &p)
	completeWords(cmd, "kind", client.WaitTimer, client.WaitEvent)
	completeFlag(cmd, "agent", e.completeAgents)
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

// continueWaits returns "waits continue".
func (e *environment) continueWaits() *cobra.Command {
	d := client.Decision{Decision: client.Answer}
	var data string
	cmd := e.decideWaits("continue ID…", "Continue runs before their waits end", &d)
	cmd.Long = "Continue runs before their waits end. A run that waits for an event receives one with the data of --data."
	cmd.Example = `  perdure waits continue int_izj67xohajsekbpcs6mixkzq --data '{"amount": 70}'`
	decide := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		content, err := dataArgument(cmd, data)
		if err != nil {
			return err
		}
		d.Content = client.EventContent(content)
		return decide(cmd, ids)
	}
	cmd.Flags().StringVar(&data, "data", "", "data of the event: JSON, @FILE, or - for standard input; default: null")
	return cmd
}

// cancelWaits returns "waits cancel".
func (e *environment) cancelWaits() *cobra.Command {
	d := client.Decision{Decision: client.Reject}
	cmd := e.decideWaits("cancel ID…", "End waits without what they wait for", &d)
	cmd.Long = "End waits without what they wait for. A step of a pipeline fails with the code rejected. A model receives the reason."
	cmd.Flags().StringVar(&d.Reason, "reason", "", "the reason, which the model receives")
	return cmd
}

// decideWaits is decideCommand for waits.
func (e *environment) decideWaits(use, short string, d *client.Decision) *cobra.Command {
	cmd := e.decideCommand(use, short, d, waitThreads)
	cmd.ValidArgsFunction = e.completeWaits
	cmd.Flags().Lookup("thread").Usage = "the thread of the waits; default: from the list of waits"
	return cmd
}

// waitThreads finds the threads of waits. It reads page after page until it has found all.
func waitThreads(ctx context.Context, c *client.Client, ids []string) (map[string]string, error) {
	threads := map[string]string{}
	p := client.Paging{Limit: 500}
	for {
		page, err := c.Waits(ctx, client.WaitFilter{}, p)
		if err != nil {
			return nil, err
		}
		for _, w := range page.Value.Items {
			threads[w.ID] = w.ThreadID
		}
		missing := slices.IndexFunc(ids, func(id string) bool { return threads[id] == "" })
		if missing < 0 {
			return threads, nil
		}
		if p.Cursor = page.Value.NextCursor; p.Cursor == "" {
			return nil, &exitError{exitNotFound, fmt.Errorf("no open wait %s: to see how one has ended, add --thread", ids[missing])}
		}
	}
}

// describeAwaited describes what a wait waits for: an event with the values of its data, or a time.
func describeAwaited(w *client.Wait) string {
	if w.Kind != client.WaitEvent {
		return "time"
	}
	text := "event " + w.Event
	for _, path := range slices.Sorted(maps.Keys(w.Match)) {
		value, _ := json.Marshal(w.Match[path]) // it was decoded from JSON
		text += " " + path + "=" + string(value)
	}
	return text
}

// describeWait describes a wait in one line, with its end.
func describeWait(w *client.Wait) string {
	if w.Kind != client.WaitEvent {
		return "waits until " + localTime(w.Until)
	}
	return "waits for the " + describeAwaited(w) + ", at most until " + localTime(w.Until)
}

// localTime returns a time in the zone of the user, to the second.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }
