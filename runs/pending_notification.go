package runs

import "time"

// NotificationEvent is what happened to interrupts.
type NotificationEvent string

// PendingNotification is a notification that has not been sent. It travels with its Interrupts, and
// refers to them.
type PendingNotification struct {
	Event  NotificationEvent `json:"event"`
	Number int               `json:"number"`
	At     time.Time         `json:"at"`
	Calls  []int             `json:"calls"` // indexes into Interrupts.Items
}
