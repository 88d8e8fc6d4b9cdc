// Package webhook tells other programs what happens to approvals: signed HTTP requests as Standard
// Webhooks (https://www.standardwebhooks.com) describes them. It sends once; what is to be sent
// again is Temporal's to send.
package webhook
