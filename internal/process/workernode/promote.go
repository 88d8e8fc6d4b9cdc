package workernode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Temporal knows a version soon after its first worker has begun to poll: promote repeats its
// attempts at promoteInterval, for up to promoteTimeout. It waits up to routingTimeout until the task
// queues have the routing.
const (
	promoteInterval = 200 * time.Millisecond
	promoteTimeout  = time.Minute
	routingTimeout  = 10 * time.Second
)

// promotion makes a worker version the current one of its deployment (Temporal's Worker
// Versioning), on which new runs start. It is used once, by one goroutine.
type promotion struct {
	temporal  client.Client
	namespace string
	version   *deploymentpb.WorkerDeploymentVersion
	logger    *slog.Logger
	done      bool // this process has made the version current
}

// promote makes the version current unless it was current or ramping before: the restart of a
// worker must not undo an operator's decision, such as a rollback. It blocks until Temporal has
// applied the change, for up to promoteTimeout. Task queues that get the routing late are no failure:
// until then their new runs start on the version before.
func (p *promotion) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, promoteTimeout, errors.New("the promotion took too long"))
	defer cancel()
	var currentSince time.Time // zero = the version is not current yet
	for {
		done, err := p.tryPromote(ctx)
		if done {
			return nil
		}
		if errors.Is(err, errRouting) {
			if currentSince.IsZero() {
				currentSince = time.Now()
			}
			if time.Since(currentSince) > routingTimeout {
				p.logger.WarnContext(ctx, "the version is current, and Temporal is still telling its task queues", "build", p.version.GetBuildId())
				return nil
			}
		}
		if err != nil && !isTemporary(err) {
			return fmt.Errorf("worker: promote %s: %w", p.version.GetBuildId(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("worker: promote %s: %w", p.version.GetBuildId(), errors.Join(context.Cause(ctx), err))
		case <-time.After(promoteInterval):
		}
	}
}

// What a promotion may have to wait for.
var (
	errVersionUnknown = errors.New("the version is not known to Temporal yet")
	errRouting        = errors.New("not all task queues of the version have the new routing yet")
)

// tryPromote reads the state of the deployment, and changes it if necessary. It returns true if
// nothing is left to do.
func (p *promotion) tryPromote(ctx context.Context) (bool, error) {
	now, err := p.temporal.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: p.namespace, DeploymentName: p.version.GetDeploymentName(),
	})
	if err != nil {
		return false, err
	}
	info := now.GetWorkerDeploymentInfo()
	i := slices.IndexFunc(info.GetVersionSummaries(), func(v *summary) bool { return v.GetDeploymentVersion().GetBuildId() == p.version.GetBuildId() })
	if i < 0 {
		return false, errVersionUnknown
	}
	v := info.GetVersionSummaries()[i]
	switch activated := v.GetFirstActivationTime() != nil || v.GetCurrentSinceTime() != nil; {
	case !activated:
		return false, p.set(ctx, now.GetConflictToken())
	case info.GetRoutingConfigUpdateState() == enums.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS:
		return false, errRouting
	case p.done:
		p.logger.InfoContext(ctx, "the version is current and gets new runs", "build", p.version.GetBuildId())
	default:
		p.logger.InfoContext(ctx, "the version was current or ramping before, and is not promoted", "build", p.version.GetBuildId())
	}
	return true, nil
}

// set makes the version current. It fails if the deployment was changed since token was read.
func (p *promotion) set(ctx context.Context, token []byte) error {
	deployment := p.temporal.WorkerDeploymentClient().GetHandle(p.version.GetDeploymentName())
	_, err := deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: p.version.GetBuildId(), ConflictToken: token})
	p.done = p.done || err == nil
	return err
}

// summary is Temporal's description of a version.
type summary = deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary

// isTemporary reports whether a repetition may succeed soon: Temporal does not know the version
// yet, or the version does not poll all of its queues yet, or the deployment is changed
// concurrently, or Temporal is unavailable.
func isTemporary(err error) bool {
	var (
		notFound     *serviceerror.NotFound
		precondition *serviceerror.FailedPrecondition
		exhausted    *serviceerror.ResourceExhausted
		unavailable  *serviceerror.Unavailable
		deadline     *serviceerror.DeadlineExceeded
	)
	return errors.Is(err, errVersionUnknown) || errors.Is(err, errRouting) ||
		errors.As(err, &notFound) || errors.As(err, &precondition) || errors.As(err, &exhausted) || errors.As(err, &unavailable) || errors.As(err, &deadline)
}
