package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	namespace = "default"
	retention = 24 * time.Hour
	// patience is how long the server may take until the namespace is usable. look is the poll
	// interval.
	patience = 30 * time.Second
	look     = 50 * time.Millisecond
)

// registerNamespace creates the namespace and waits until it is usable, which takes some seconds.
func (s settings) registerNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{HostPort: s.frontend(), Namespace: namespace, Logger: sdklog.NewStructuredLogger(quiet)})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	for {
		_, err := c.DescribeWorkflowExecution(ctx, "is-the-server-ready", "")
		var absent *serviceerror.NotFound
		if errors.As(err, &absent) {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("the namespace does not come up: %w", err)
		}
	}
}
