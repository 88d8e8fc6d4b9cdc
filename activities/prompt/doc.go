// Package prompt turns a conversation into what a model is sent: messages with the results of all
// tool calls (prompt.go), as much of them as fits the model's room (window.go), counted by an
// estimate (estimate.go). Content parts that a provider cannot take are found before the call
// (dropped.go).
package prompt
