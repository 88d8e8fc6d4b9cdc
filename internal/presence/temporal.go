package presence

import (
	"context"
	"errors"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// WorkerLost is the type of the failure that an attempt gets whose worker died. It is retryable, and
// the next attempt starts at once.
const WorkerLost = "worker_lost"

// FailAttempts returns a Fail that speaks to Temporal. An attempt that has ended otherwise is no error.
func FailAttempts(service workflowservice.WorkflowServiceClient, namespace string) Fail {
	return func(ctx context.Context, worker string, token []byte) error {
		_, err := service.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
			Namespace: namespace, TaskToken: token, Identity: worker,
			Failure: &failurepb.Failure{
				Message: "the worker process ended while the activity ran",
				FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
					Type:           WorkerLost,
					NextRetryDelay: durationpb.New(time.Millisecond), // zero would mean the policy's backoff
				}},
			},
		})
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return nil
		}
		return err
	}
}
