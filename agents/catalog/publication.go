package catalog

import "time"

// Source is the origin of a publication.
type Source string

// Values of Source.
const (
	SourceDirectory Source = "directory" // the folder of the API process
	SourcePut       Source = "put"       // a client of the API
)

// Publication is the event that a revision becomes current.
type Publication struct {
	Number   uint64 // from 1
	Revision string
	Source   Source
	At       time.Time
}

// publication is the stored form of a Publication.
type publication struct {
	Revision string `json:"revision"`
	Source   Source `json:"source"`
}
