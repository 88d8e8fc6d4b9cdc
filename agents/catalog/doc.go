// Package catalog stores definitions of agents in a key-value bucket of NATS JetStream that all
// processes share.
//
//	<agent>/<revision>                a definition of an agent of the platform; never changes
//	published.<agent>.<n>             the agent's n-th publication: the revision that became
//	                                  current, and its source
//	<tenant>/<agent>/<revision>       a definition of an agent of a tenant
//	published.<tenant>.<agent>.<n>    a publication of it. <tenant> is a stream.KeyToken
//	draft.<owner>.<agent>.<revision>  the record of a draft. <owner> is a stream.KeyToken of a tenant,
//	                                  or "=" for the platform
//	draft/<owner>/<agent>/<revision>  its definition
//
// An agent belongs to the platform or to a tenant. A tenant's agent is unknown to other tenants. A
// revision tells to which of both its agent belongs (stream.IsTenantRevision), so an agent and its
// revision, as the log and histories have them, name one definition for the runs of a tenant.
//
// # Names
//
// A name means an agent of the platform where an agent of the platform refers to it: a tenant
// cannot replace a part of an agent that it does not own. Where a tenant's agent or one of its
// callers uses the name, it means the tenant's agent, or the platform's if the tenant has none. Put
// refuses a name of the platform for a tenant's agent (ErrTaken). If the platform publishes the
// name of a tenant's agent later, the tenant keeps its agent, and may publish further revisions.
//
// The last publication is the current one. A publisher creates the key after the last one. If
// several publish concurrently, one succeeds and the others read again, so the publications form a
// history.
//
// A draft is a definition that was not published. Runs that name its revision use it as any other
// revision. It is never current.
//
// The API publishes, and resolves an agent's name to a revision when it accepts an input; the run
// keeps that revision. Workers only read revisions.
package catalog
