// Package silence ends runs whose workflow has closed without writing a terminal record.
//
// A workflow may be terminated, time out, or fail to replay. Then no worker ends its run in the
// log, and its readers would wait for ever. So a node that has a reader of a silent run asks
// Temporal about the workflow. If the workflow has closed and the log has no end of the run, the
// node writes one.
//
// Several nodes, and a late worker, may write concurrently: the fence of the main lane and the seal
// of the run let exactly one end count. Apart from this, the API writes only proposals, requests to
// cancel, and forks to the log.
package silence
