package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// eventCommand returns the group "event".
func (e *environment) eventCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "event", Short: "Send events to the runs that wait for them", Args: cobra.NoArgs}
	cmd.AddCommand(e.sendEvent())
	return cmd
}

// sendEvent returns "event send".
func (e *environment) sendEvent() *cobra.Command {
	var event client.CloudEvent
	var data string
	cmd := &cobra.Command{
		Use: "send TYPE", Short: "Send an event",
		Long: `Send an event to the runs that wait for one of its type, now or in the next 72 hours. With an ID, the same command again
changes nothing.`,
		Example: `  perdure event send payment.received --id pay-77 --data '{"orderId": "A-1001", "amount": 70}'
  perdure event send report.uploaded --source /reports --data @report.json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		event.Type = args[0]
		if event.ID == "" {
			event.ID = newID("event")
		}
		var err error
		if event.Data, err = dataArgument(cmd, data); err != nil {
			return err
		}
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		receipt, err := c.SendEvent(cmd.Context(), event)
		switch {
		case err != nil:
			return err
		case e.json:
			return document(cmd.OutOrStdout(), receipt.JSON)
		case receipt.Value.Duplicate:
			return e.printDone(cmd, "%s was sent before.", event.ID)
		}
		return e.printDone(cmd, "%s is sent.", event.ID)
	}
	f := cmd.Flags()
	f.StringVar(&event.ID, "id", "", "its ID, which with the source identifies it; default: a new one")
	f.StringVar(&event.Source, "source", "/perdure/cli", "where it happened, a URI reference")
	f.StringVar(&data, "data", "", "its data: JSON, @FILE, or - for standard input; default: none")
	return cmd
}

// dataArgument returns the JSON of a flag, of a file (@FILE) or of standard input (-); nil = the flag
// is empty.
func dataArgument(cmd *cobra.Command, data string) (any, error) {
	if data == "" {
		return nil, nil
	}
	text, err := textArgument(cmd, data)
	if err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(data, "@"); ok {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, usage(fmt.Errorf("--data: %w", err))
		}
		text = string(content)
	}
	if !json.Valid([]byte(text)) {
		return nil, usage(errors.New("--data must be JSON: put a text into quotation marks, as in '\"text\"'"))
	}
	return json.RawMessage(text), nil
}
