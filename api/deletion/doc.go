// Package deletion deletes threads with everything that is stored about them: for the route of a
// thread, for the deletion of a subject, and for the retention.
package deletion
