package subjectroutes

import "time"

// exportedFile is a file that the subject has uploaded. Its bytes are at URL.
type exportedFile struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Name      string    `json:"name,omitempty"`
	Type      string    `json:"type"`
	Size      int64     `json:"size"`
	CreatedAt time.Time `json:"createdAt"`
}
