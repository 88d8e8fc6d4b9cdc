// Package usage has the report of what runs have used, by tenant, day and agent.
//
// A worker counts a run when it has ended, and the API sums the counts. The report has names of
// tenants, agents and models, and no content.
package usage
