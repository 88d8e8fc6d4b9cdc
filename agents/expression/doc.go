// Package expression evaluates the expressions of pipeline steps: CEL expressions, and templates,
// in which ${…} stands for the value of an expression.
//
//	steps.plan.kind == "refund"        an [Expression]
//	Refund ${steps.order.id}, please   a [Template]
//
// Evaluation has a cost limit and no side effects. Errors name keys of the definition and never
// values, because they are shown to users who may not see the values.
package expression
