package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// maxReconnectPause bounds the pause between two attempts to reconnect to a lost server: until one
// succeeds, this process can do nothing. The bound of the SDK is ten times as long.
const maxReconnectPause = time.Second

// dialTemporal connects, and checks that the namespace exists. A namespace becomes visible some
// seconds after its creation, and a worker that polls before that fails. A process that may not
// describe the namespace is accepted.
func dialTemporal(ctx context.Context, o client.Options, logger *slog.Logger) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	o.Logger = sdklog.NewStructuredLogger(logger)
	pace := backoff.DefaultConfig
	pace.MaxDelay = maxReconnectPause
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions,
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: attemptTimeout}))
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
