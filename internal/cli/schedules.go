package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// schedulesCommand returns the group "schedules". Without a subcommand it lists schedules.
func (e *environment) schedulesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "schedules", Short: "List, create and control schedules", Args: cobra.NoArgs}
	list := e.listSchedules()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, e.showSchedule(), e.createSchedule(),
		e.scheduleCommand("pause ID", "Pause a schedule", "%s is paused.", (*client.Client).PauseSchedule),
		e.scheduleCommand("resume ID", "Resume a paused schedule", "%s continues.", (*client.Client).ResumeSchedule),
		e.triggerSchedule(),
		e.scheduleCommand("delete ID", "Delete a schedule; its runs continue", "%s is deleted.", (*client.Client).DeleteSchedule))
	return cmd
}

// listSchedules returns "schedules list".
func (e *environment) listSchedules() *cobra.Command {
	var p client.Paging
	cmd := &cobra.Command{Use: "list", Short: "List schedules (the default)", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		list, err := c.Schedules(cmd.Context(), p)
		if err != nil {
			return err
		}
		rows := [][]string{{"SCHEDULE", "AGENT", "WHEN", "PAUSED", "THREAD", "NOTE"}}
		for _, s := range list.Value.Items {
			rows = append(rows, []string{s.ID, s.Agent, describeTimes(s), yesOrEmpty(s.Paused), s.ThreadID, s.Note})
		}
		return e.printResult(cmd, list.JSON, list.Value.NextCursor, rows)
	}
	paging(cmd, &p)
	return cmd
}

// describeTimes describes the times of a schedule in one line. Calendars are not shown.
func describeTimes(s client.Schedule) string {
	times := s.Cron
	for _, i := range s.Intervals {
		times = append(times, "every "+i.Every)
	}
	return strings.Join(times, "; ") + " " + s.TimeZone
}

// showSchedule returns "schedules show".
func (e *environment) showSchedule() *cobra.Command {
	cmd := e.threadCommand("show ID", "Show a schedule, its next times and its last runs", func(cmd *cobra.Command, c *client.Client, id string) error {
		answer, err := c.Schedule(cmd.Context(), id)
		if err != nil {
			return err
		}
		s := answer.Value
		rows := [][]string{
			{"schedule", s.ID}, {"agent", s.Agent}, {"when", describeTimes(s)}, {"overlap", s.Overlap}, {"paused", yesOrEmpty(s.Paused)},
			{"thread", s.ThreadID}, {"note", s.Note},
		}
		for _, next := range s.Next {
			rows = append(rows, []string{"next", next.Local().Format(time.RFC1123)})
		}
		for _, f := range s.Recent {
			rows = append(rows, []string{"started", strings.Join([]string{f.ScheduledAt.Local().Format(time.RFC1123), f.ThreadID, f.RunID, f.Outcome, f.Code}, "  ")})
		}
		return e.printResult(cmd, answer.JSON, "", rows)
	})
	cmd.ValidArgsFunction = e.completeSchedules
	return cmd
}

// triggerSchedule returns "schedules trigger".
func (e *environment) triggerSchedule() *cobra.Command {
	var overlap string
	cmd := e.scheduleCommand("trigger ID", "Fire a schedule now", "%s starts a run.", func(c *client.Client, ctx context.Context, id string) error {
		return c.TriggerSchedule(ctx, id, overlap)
	})
	cmd.Flags().StringVar(&overlap, "overlap", "", "if the previous run has not ended: see create; default: that of the schedule")
	completeWords(cmd, "overlap", overlaps...)
	return cmd
}

// scheduleCommand returns a command that calls act with the ID of a schedule. done is the message
// of success, with %s for the ID.
func (e *environment) scheduleCommand(use, short, done string, act func(*client.Client, context.Context, string) error) *cobra.Command {
	cmd := e.threadCommand(use, short, func(cmd *cobra.Command, c *client.Client, id string) error {
		if err := act(c, cmd.Context(), id); err != nil {
			return err
		}
		return e.printDone(cmd, done, id)
	})
	cmd.ValidArgsFunction = e.completeSchedules
	return cmd
}

// overlaps are the values of --overlap.
var overlaps = []string{"skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all"}

// scheduleOptions are the flags of "schedules create". Their JSON is the schedule.
type scheduleOptions struct {
	ID       string              `json:"id"`
	Agent    string              `json:"agent"`
	ThreadID string              `json:"threadId,omitempty"`
	Cron     []string            `json:"cron,omitempty"`
	Every    []map[string]string `json:"intervals,omitempty"`
	TimeZone string              `json:"timeZone,omitempty"`
	Overlap  string              `json:"overlap,omitempty"`
	RunAs    string              `json:"runAs,omitempty"`
	Note     string              `json:"note,omitempty"`
	Input    any                 `json:"input"`
	every    []string
	file     string
}

// createSchedule returns "schedules create".
func (e *environment) createSchedule() *cobra.Command {
	var o scheduleOptions
	cmd := &cobra.Command{
		Use: "create [AGENT TEXT]", Short: "Create a schedule that sends a message to an agent",
		Long: `Create a schedule that sends a message to an agent, or one from a JSON document with any member of a schedule (--file).
With an ID, the same command again changes nothing.`,
		Example: `  perdure schedules create reporter "Write the weekly report." --id weekly --cron "0 9 * * 1" --time-zone Europe/Berlin
  perdure schedules create --file schedule.json`,
		Args: cobra.RangeArgs(0, 2), ValidArgsFunction: e.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := o.body(cmd, args)
			if err != nil {
				return err
			}
			c, err := e.client(cmd)
			if err != nil {
				return err
			}
			s, err := c.CreateSchedule(cmd.Context(), body)
			if err != nil {
				return err
			}
			if e.json {
				return document(cmd.OutOrStdout(), s.JSON)
			}
			return e.printDone(cmd, "%s is created.", s.Value.ID)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "JSON document of the schedule; - is standard input")
	f.StringVar(&o.ID, "id", "", "its ID; default: a new one")
	f.StringArrayVar(&o.Cron, "cron", nil, `a time, such as "0 9 * * 1-5"; may be repeated`)
	f.StringArrayVar(&o.every, "every", nil, "an interval, such as 30m; may be repeated")
	f.StringVar(&o.TimeZone, "time-zone", "", "time zone of --cron, such as Europe/Berlin; default: UTC")
	f.StringVar(&o.ThreadID, "thread", "", "the thread that each run continues; default: a new one for each run")
	f.StringVar(&o.Overlap, "overlap", "", "if the previous run has not ended: skip, buffer_one, buffer_all, cancel_other, terminate_other or allow_all")
	f.StringVar(&o.RunAs, "run-as", "", "the configured service as which the runs act; default: you, without your roles")
	f.StringVar(&o.Note, "note", "", "a note for readers")
	completeWords(cmd, "overlap", overlaps...)
	completeFlag(cmd, "thread", e.completeThreads)
	return cmd
}

// body returns the JSON of the schedule that arguments and flags describe. It always has an ID, so
// that the client can repeat the request.
func (o scheduleOptions) body(cmd *cobra.Command, args []string) (json.RawMessage, error) {
	if o.ID == "" {
		o.ID = newID("schedule")
	}
	switch {
	case o.file != "" && len(args) > 0:
		return nil, usage(errors.New("--file has the whole schedule: omit AGENT and TEXT"))
	case o.file != "":
		return o.fromFile(cmd)
	case len(args) != 2:
		return nil, usage(errors.New("set AGENT and TEXT, or --file"))
	}
	text, err := textArgument(cmd, args[1])
	if err != nil {
		return nil, err
	}
	o.Agent = args[0]
	for _, e := range o.every {
		o.Every = append(o.Every, map[string]string{"every": e})
	}
	o.Input = map[string]any{"messages": []any{map[string]string{"role": "user", "content": text}}} // without the ID of the message, which each run sets
	return json.Marshal(o)
}

// fromFile returns the schedule of a file, with an ID if the file has none.
func (o scheduleOptions) fromFile(cmd *cobra.Command) (json.RawMessage, error) {
	text, err := readDefinition(cmd, o.file)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, usage(fmt.Errorf("%s: %w", o.file, err))
	}
	if members["id"] == nil && members != nil {
		members["id"], _ = json.Marshal(o.ID) // a string always encodes
	}
	return json.Marshal(members)
}
