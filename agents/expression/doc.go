// Package expression evaluates what steps compute: expressions in CEL, and texts in which ${…} stands for the
// value of one.
//
//	steps.plan.kind == "refund"        an [Expression]
//	Refund ${steps.order.id}, please   a [Template]
//
// Evaluating is bounded in cost and changes nothing. Errors name keys that the author wrote, and never what
// the values are: they are told to people who may not see them.
package expression
