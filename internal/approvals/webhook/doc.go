// Package webhook sends events of the inbox to other programs: signed HTTP requests as of Standard
// Webhooks (https://www.standardwebhooks.com). [Sender.Send] sends a message once; the workflow
// webhook.deliver.v1 repeats it as the returned error allows.
package webhook
