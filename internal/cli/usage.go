package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// usageCommand returns the command "usage".
func (e *environment) usageCommand() *cobra.Command {
	var q client.UsageQuery
	cmd := &cobra.Command{Use: "usage", Short: "Show what runs have used, by agent, model, tenant or day", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&q.From, "from", "", "first day in UTC, such as 2026-01-31 (default 29 days before --to)")
	cmd.Flags().StringVar(&q.To, "to", "", "last day in UTC (default today)")
	cmd.Flags().StringSliceVar(&q.GroupBy, "by", []string{"day"}, "agent, model, tenant or day; several are separated by commas")
	cmd.Flags().StringVar(&q.Agent, "agent", "", "only runs of this agent")
	cmd.Flags().StringVar(&q.Tenant, "tenant", "", "another tenant, for administrators of the platform")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		usage, err := c.Usage(cmd.Context(), q)
		if err != nil {
			return err
		}
		return e.printResult(cmd, usage.JSON, "", usageRows(q.GroupBy, usage.Value.Items))
	}
	return cmd
}

// usageRows returns the table of a report.
func usageRows(groupBy []string, items []client.UsageItem) [][]string {
	header := strings.Split(strings.ToUpper(strings.Join(groupBy, ",")), ",")
	rows := [][]string{append(header, "RUNS", "FAILED", "CANCELLED", "INTERRUPTED", "INPUT", "OUTPUT", "TOTAL", "COST", "SECONDS")}
	for _, item := range items {
		names := map[string]string{"day": item.Day, "tenant": item.Tenant, "agent": item.Agent, "model": item.Model}
		var row []string
		for _, group := range groupBy {
			row = append(row, names[group])
		}
		for _, n := range []int64{item.Runs, item.Failed, item.Cancelled, item.Interrupted, item.InputTokens, item.OutputTokens, item.TotalTokens} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		cost := ""
		if item.Cost != nil {
			cost = strings.TrimSpace(item.Cost.Amount.String() + " " + item.Cost.Currency)
		}
		rows = append(rows, slices.Concat(row, []string{cost, fmt.Sprintf("%.1f", item.Seconds)}))
	}
	return rows
}
