package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// summary is the content of a summary's done record. Text replaces messages for models. Usage is
// reported by the step that made the summary (see otherUsage); other steps use the text only.
type summary struct {
	Text  string     `json:"text"`
	Usage runs.Usage `json:"usage"`
}

// decodeKept decodes what a done record keeps for later steps into v, a pointer.
func decodeKept(ctx context.Context, done *stream.Record, v any) error {
	var result stream.Result
	if err := done.Result(ctx, &result); err != nil {
		return err
	}
	if err := json.Unmarshal(result.Kept, v); err != nil {
		return fmt.Errorf("activities: decode the stored step: %w", err)
	}
	return nil
}
