package activities

import (
	"golang.org/x/sync/semaphore"

	"github.com/perdure/perdure/internal/files"
)

// maxLoaded bounds the bytes of files in all requests of the process. Further requests wait.
const maxLoaded = 128 << 20

// FileStore reads the files of messages. The zero value has none. It is safe for concurrent use. A process
// has one, whose copies share maxLoaded.
type FileStore struct {
	store *files.Store
	room  *semaphore.Weighted // of maxLoaded
}

// NewFileStore returns the files of a store.
func NewFileStore(s *files.Store) FileStore { return FileStore{s, semaphore.NewWeighted(maxLoaded)} }
