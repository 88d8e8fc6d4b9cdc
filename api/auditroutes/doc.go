// Package auditroutes has the routes of the audit log and of legal holds.
package auditroutes
