// Package retention removes what is older than its time to live: threads and entries of the audit
// log. A Rules table has the times, from a file of the operator. A Remover does the work.
//
//	Rules ──time──► Remover ──lease──► oldest settled threads ──► audit entry ──► deletion
//	                   │               blocks of audit entries ──► audit entry ──► purge
//	                   ├──► deletions that were interrupted
//	                   └──► files to which no thread refers
//
// Every API process has a Remover. A lease in NATS lets one of them work at a time. A round that is
// interrupted is repeated by the next one.
package retention
