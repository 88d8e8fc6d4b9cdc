// Package schedules is what runs on a schedule are made of: what a client says about them
// (Schedule), where that is kept (Store), and what Temporal is told of it.
//
//	Schedule ──► Store    all of it, by schedule and revision: its input is content
//	        └──► Temporal  when to fire, and which revision of which schedule
//
// Temporal decides which schedules there are and when they fire. What a firing begins is derived
// from the schedule and its nominal time, so that a time which fires twice is one run.
package schedules
