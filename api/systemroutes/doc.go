// Package systemroutes serves what operators see of a deployment: its workers, task queues, log and
// servers. It also serves what a web page needs before its user has signed in.
package systemroutes
