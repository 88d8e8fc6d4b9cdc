// Package source has the sources of the configuration: other systems that send events, and whose runs
// get them. A webhook is a source whose requests have the signature of a provider. A subject is a
// source that publishes messages in NATS.
package source
