// Package source has the sources of the configuration. Each names a system that sends events, and the tenant
// whose runs receive them. A webhook is a source whose requests have the signature of a provider. A subject is a
// source that publishes messages in NATS.
package source
