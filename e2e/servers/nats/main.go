// Command nats is one NATS node with the deployed configuration, on loopback addresses. Tests kill
// it as a process.
//
//	nats -config FILE -name N -data DIR -port P [-cluster-port P -routes P,P] [-max-store BYTES]
//
// It prints {"nats": …} when it accepts connections, and exits when its input ends. With routes it
// may print that before the cluster has a leader.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	loopback = "127.0.0.1"
	// patience is how long a node may take to start.
	patience = 30 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	o, err := options(args)
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(patience) {
		return errors.New("it does not take connections")
	}
	if err := json.NewEncoder(out).Encode(map[string]string{"nats": s.ClientURL()}); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() { // ends with the process, at the latest
		defer close(closed)
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return nil
}

// options reads the configuration file and sets the addresses, ports and folders of the node.
func options(args []string) (*server.Options, error) {
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	file := flags.String("config", "", "configuration file")
	name := flags.String("name", "", "name of the node")
	data := flags.String("data", "", "directory")
	port := flags.Int("port", 0, "port for clients")
	clusterPort := flags.Int("cluster-port", 0, "port for other nodes; 0 = there are none")
	routes := flags.String("routes", "", "URLs of all nodes, separated by commas")
	maxStore := flags.Int64("max-store", 0, "bound of what is stored, in bytes; 0 = as the disk allows")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if err := os.Setenv("SERVER_NAME", *name); err != nil { // the file refers to it
		return nil, err
	}
	o, err := server.ProcessConfigFile(*file)
	if err != nil {
		return nil, err
	}
	o.Host, o.Port, o.HTTPHost, o.HTTPPort, o.StoreDir, o.NoSigs = loopback, *port, "", 0, *data, true
	o.JetStreamMaxStore = *maxStore
	if *clusterPort == 0 {
		o.Cluster, o.Routes = server.ClusterOpts{}, nil
		return o, nil
	}
	o.Cluster.Name, o.Cluster.Host, o.Cluster.Port, o.Routes = "perdure", loopback, *clusterPort, server.RoutesFromStr(*routes)
	return o, nil
}
