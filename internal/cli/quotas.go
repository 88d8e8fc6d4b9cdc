package cli

import (
	"strconv"

	"github.com/spf13/cobra"
)

// quotasCommand returns the command "quotas".
func (e *environment) quotasCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{Use: "quotas", Short: "Show what a tenant has of its quotas, and its rates", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&tenant, "tenant", "", "another tenant, for administrators of the platform")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := e.client(cmd)
		if err != nil {
			return err
		}
		quotas, err := c.Quotas(cmd.Context(), tenant)
		if err != nil {
			return err
		}
		rows := [][]string{{"QUOTA", "USED", "LIMIT"}}
		for _, q := range quotas.Value.Quotas {
			rows = append(rows, []string{q.Quota, strconv.FormatInt(q.Used, 10), describeLimit(q.Limit)})
		}
		for _, r := range quotas.Value.Rates {
			rows = append(rows, []string{r.Rate, "", describeLimit(r.PerSecond)})
		}
		rows = append(rows, []string{"subjectPercent", "", describeLimit(quotas.Value.SubjectPercent)})
		return e.printResult(cmd, quotas.JSON, "", rows)
	}
	return cmd
}

// describeLimit describes a limit; nil = there is none.
func describeLimit(limit *int64) string {
	if limit == nil {
		return "unlimited"
	}
	return strconv.FormatInt(*limit, 10)
}
