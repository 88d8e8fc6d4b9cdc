// Package threadroutes serves threads: their list, what they hold, their superseded messages,
// forks, and their deletion.
package threadroutes
