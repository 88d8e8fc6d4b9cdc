package temporaltest

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// cancelWaiter lets cancelled activities report their results if the workflow waits for them
// (WaitForCancellation). The test environment does not.
type cancelWaiter struct {
	interceptor.WorkerInterceptorBase
}

func (*cancelWaiter) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &waitingInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type waitingInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (p *waitingInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return p.Next.Init(&waitingOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}})
}

type waitingOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (p *waitingOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if workflow.GetActivityOptions(ctx).WaitForCancellation && ctx.Err() == nil {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	return p.Next.ExecuteActivity(ctx, activityType, args...)
}
