// Package policy decides what callers may do. It is the only place that decides: every route asks
// an [Engine], which evaluates the policies of default.cedar and those of the operator
// (https://docs.cedarpolicy.com).
//
//	principal  User::"<tenant>/<subject>", in its roles (Role::"<role>") and its tenant
//	           (Tenant::"<tenant>"), and in Group::"tenant-administrators" or
//	           Group::"platform-administrators" if a role makes it one
//	action     an Action, such as Action::"readThread"
//	resource   a Resource: a Thread, a Schedule, an Agent or a Tenant
//
// schema.cedarschema has their attributes, and the resources of each action. A policy that does not
// fit it is an error.
//
// What no policy permits is denied, and a forbid overrides every permit.
package policy
