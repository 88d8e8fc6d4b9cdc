// Package threadroutes serves threads: their list, summary, messages, state, runs and superseded
// messages, forks, and their deletion. Reads answer from a snapshot of the thread in the log, so
// every node gives the same answer.
package threadroutes
