// Package schedules has the parts of runs that start on a schedule: what a client writes
// (Schedule), the store of schedules (Store), and Temporal's side (Scheduler).
//
//	Schedule ──► Store  all of it, by schedule and revision: the input is content
//	        └──► Scheduler  the times, and which revision of which schedule to fire
//
// Temporal decides when a schedule fires. At each time it starts the workflow schedule.fire.v1,
// whose activity starts the run. The IDs of the run derive from the schedule and the nominal time,
// so a time that fires twice is one run.
package schedules
