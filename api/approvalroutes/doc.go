// Package approvalroutes serves approvals and questions: decisions, results of client tool calls,
// the inbox of all threads with its feed, the audit of a thread, and links that decide. Package
// decisions makes the decisions; the inbox and its archive are caches of the log.
package approvalroutes
