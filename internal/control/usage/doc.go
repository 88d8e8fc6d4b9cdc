// Package usage has the report of what runs have used, by tenant, day and agent.
//
// A worker counts a run when it has ended. The API counts the runs that it ends itself, because
// their workflow is dead, and sums the counts. The report has names of tenants, agents and models,
// and no content.
package usage
