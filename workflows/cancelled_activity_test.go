package workflows_test

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// patient lets cancelled activities report their results if the workflow waits for them
// (WaitForCancellation). The test environment does not.
type patient struct {
	interceptor.WorkerInterceptorBase
}

func (*patient) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &patientInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type patientInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (p *patientInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return p.Next.Init(&patientOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}})
}

type patientOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (p *patientOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if workflow.GetActivityOptions(ctx).WaitForCancellation && ctx.Err() == nil {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	return p.Next.ExecuteActivity(ctx, activityType, args...)
}
