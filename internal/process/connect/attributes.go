package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// attributeTimeout bounds the wait until new search attributes can be used.
const attributeTimeout = 30 * time.Second

// EnsureSearchAttributes creates the search attributes that the namespace lacks, all of type
// Keyword. It returns when workflows can be started with them, after attributeTimeout at most. If
// the process may not create them, it logs a warning and returns nil: an operator has to create
// them.
//
// It checks with a query that uses the attributes, because every process that may start workflows
// may also query. It queries again after creating them: two processes that create attributes
// concurrently can overwrite each other's.
func EnsureSearchAttributes(ctx context.Context, c client.Client, namespace string, names []string, logger *slog.Logger) error {
	usable := func() (bool, error) {
		err := queryAttributes(ctx, c, namespace, names)
		if _, missing := errors.AsType[*serviceerror.InvalidArgument](err); missing {
			if err := addAttributes(ctx, c, namespace, names); err != nil {
				return false, backoff.Permanent(err)
			}
			return false, err
		}
		if err != nil {
			return false, backoff.Permanent(err)
		}
		return true, nil
	}
	pace := backoff.NewConstantBackOff(250 * time.Millisecond)
	_, err := backoff.Retry(ctx, usable, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(attributeTimeout))
	if forbidden(err) {
		logger.WarnContext(ctx, "search attributes are missing or cannot be checked, and this process has no permission to create them",
			"namespace", namespace, "attributes", names, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("search attributes of namespace %s: %w", namespace, err)
	}
	return nil
}

// queryAttributes counts workflows by all attributes. Temporal answers InvalidArgument if one of
// them is missing.
func queryAttributes(ctx context.Context, c client.Client, namespace string, names []string) error {
	terms := make([]string, len(names))
	for i, name := range names {
		terms[i] = name + " = 'none'"
	}
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: strings.Join(terms, " AND ")})
	return err
}

// addAttributes creates all attributes. It is no error if they exist.
func addAttributes(ctx context.Context, c client.Client, namespace string, names []string) error {
	keywords := make(map[string]enums.IndexedValueType, len(names))
	for _, name := range names {
		keywords[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: keywords})
	if _, exists := errors.AsType[*serviceerror.AlreadyExists](err); exists {
		return nil
	}
	return err
}

// forbidden reports whether the process may not create search attributes. Temporal Cloud has no
// operator service for clients, and answers Unimplemented.
func forbidden(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	_, absent := errors.AsType[*serviceerror.Unimplemented](err)
	return denied || absent
}
