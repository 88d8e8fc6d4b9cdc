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

// Temporal knows a version soon after its first worker has begun to poll.
const (
	promoteInterval = 200 * time.Millisecond // between two attempts
	promotePatience = time.Minute
)

// promotion makes a version of a deployment the current one, on which new runs begin.
type promotion struct {
	temporal  client.Client
	namespace string
	version   *deploymentpb.WorkerDeploymentVersion
	logger    *slog.Logger
	done      bool // this process made it current
}

// promote makes the version current if it never was current or ramping. A worker that is restarted
// must not undo an operator's decision, such as a rollback.
func (p *promotion) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, promotePatience, errors.New("it took too long"))
	defer cancel()
	for {
		done, err := p.try(ctx)
		if done {
			return nil
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

// try looks at the deployment and changes it if necessary. It returns true when nothing is left to
// do.
func (p *promotion) try(ctx context.Context) (bool, error) {
	now, err := p.temporal.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
		Namespace: p.namespace, DeploymentName: p.version.GetDeploymentName(),
	})
	if err != nil {
		return false, err
	}
	info := now.GetWorkerDeploymentInfo()
	at := slices.IndexFunc(info.GetVersionSummaries(), func(v *summary) bool { return v.GetDeploymentVersion().GetBuildId() == p.version.GetBuildId() })
	if at < 0 {
		return false, nil
	}
	v := info.GetVersionSummaries()[at]
	switch activated := v.GetFirstActivationTime() != nil || v.GetCurrentSinceTime() != nil; {
	case !activated:
		return false, p.set(ctx, now.GetConflictToken())
	case info.GetRoutingConfigUpdateState() == enums.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS:
		return false, nil // not all of its task queues know it yet
	case p.done:
		p.logger.InfoContext(ctx, "the version is current: new runs go to it", "build", p.version.GetBuildId())
	default:
		p.logger.InfoContext(ctx, "the version has been current or ramping before; it stays what it is", "build", p.version.GetBuildId())
	}
	return true, nil
}

// set makes the version current. With the token it fails if the deployment was changed
// concurrently.
func (p *promotion) set(ctx context.Context, token []byte) error {
	deployment := p.temporal.WorkerDeploymentClient().GetHandle(p.version.GetDeploymentName())
	_, err := deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: p.version.GetBuildId(), ConflictToken: token})
	p.done = p.done || err == nil
	return err
}

// summary is what Temporal knows of a version.
type summary = deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary

// isTemporary reports whether a repetition may succeed soon: the version is not known or does not
// poll all its queues yet, the deployment is changed concurrently, or Temporal is away.
func isTemporary(err error) bool {
	var (
		unknown     *serviceerror.NotFound
		early       *serviceerror.FailedPrecondition
		exhausted   *serviceerror.ResourceExhausted
		unavailable *serviceerror.Unavailable
		late        *serviceerror.DeadlineExceeded
	)
	return errors.As(err, &unknown) || errors.As(err, &early) || errors.As(err, &exhausted) || errors.As(err, &unavailable) || errors.As(err, &late)
}
