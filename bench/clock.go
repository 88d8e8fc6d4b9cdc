package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// epoch relates this process's clock to the machine's: time.Since is cheap (no system call) but
// counts from a moment that only this process knows.
var epoch, epochMicros = func() (time.Time, int64) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Now(), ts.Nano() / 1000
}()

// micros returns the machine's monotonic clock in microseconds. It is the same in all processes of
// the machine.
func micros() int64 { return epochMicros + time.Since(epoch).Microseconds() }
