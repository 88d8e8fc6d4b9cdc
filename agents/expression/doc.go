// Package expression evaluates what steps compute: CEL expressions, and texts in which the value of
// an expression replaces ${…}.
//
//	steps.plan.kind == "refund"        an [Expression]
//	Refund ${steps.order.id}, please   a [Template]
//
// Evaluation has a cost limit and no side effects. Errors name keys of the definition and never
// values, because people who may not see the values read them.
package expression
