// Command buckets serves the bucket "files" by the protocol of S3 or of Google Cloud Storage, on a
// directory. It checks no credentials. It prints "serving" when it is ready.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3afero"
	"github.com/spf13/afero"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	protocol := flag.String("protocol", "s3", "s3 or gs")
	dir := flag.String("data", "", "directory of the objects")
	flag.Parse()
	if err := serve(*protocol, *addr, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves a bucket until the process ends.
func serve(protocol, addr, dir string) error {
	handler, err := handlers[protocol](addr, dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return http.Serve(listener, handler) //nolint:gosec // a server of tests needs no timeouts
}

// handlers make the servers of the protocols.
var handlers = map[string]func(addr, dir string) (http.Handler, error){
	"s3": func(_, dir string) (http.Handler, error) {
		backend, err := s3afero.MultiBucket(afero.NewBasePathFs(afero.NewOsFs(), dir))
		if err != nil {
			return nil, err
		}
		return gofakes3.New(backend, gofakes3.WithAutoBucket(true)).Server(), nil
	},
	"gs": func(addr, dir string) (http.Handler, error) {
		server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
			NoListener: true, StorageRoot: dir, ExternalURL: "http://" + addr, PublicHost: addr, Writer: io.Discard,
		})
		if err != nil {
			return nil, err
		}
		server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "files"})
		return server.HTTPHandler(), nil
	},
}
