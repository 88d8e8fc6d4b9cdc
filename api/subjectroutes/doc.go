// Package subjectroutes deletes everything that a tenant stores about one subject.
package subjectroutes
