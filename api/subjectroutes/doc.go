// Package subjectroutes deletes and exports everything that a tenant stores about one subject. Both go
// through the schedules and threads of the tenant in the same way.
package subjectroutes
