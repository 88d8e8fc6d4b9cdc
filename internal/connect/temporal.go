package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// dialTemporal connects and asks for the namespace: it appears some seconds after it was created, and
// a worker that polls before would fail.
func dialTemporal(ctx context.Context, o client.Options, logger *slog.Logger) (client.Client, error) {
	o.Logger = sdklog.NewStructuredLogger(logger)
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, permanent(err)
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if _, denied := errors.AsType[*serviceerror.PermissionDenied](err); err != nil && !denied {
		c.Close()
		return nil, fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	return c, nil
}
