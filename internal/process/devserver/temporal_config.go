package devserver

import (
	"log/slog"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "perdure"
	storeName   = "sqlite"
)

var discard = slog.New(slog.DiscardHandler)

// servicePorts are the gRPC ports of Temporal's four services. They talk to each
// other over TCP even within one process.
type servicePorts struct {
	frontend, history, matching, worker int
}

// temporalPorts finds free ports; frontend is 0 or the port to use.
func temporalPorts(frontend int) (servicePorts, error) {
	if frontend != 0 {
		if err := probePort("Temporal", "--temporal-port", frontend); err != nil {
			return servicePorts{}, err
		}
	}
	free, err := freePorts(4)
	if err != nil {
		return servicePorts{}, err
	}
	if frontend == 0 {
		frontend = free[3]
	}
	return servicePorts{frontend: frontend, history: free[0], matching: free[1], worker: free[2]}, nil
}

func (p servicePorts) each(f func(service primitives.ServiceName, port int)) {
	f(primitives.FrontendService, p.frontend)
	f(primitives.HistoryService, p.history)
	f(primitives.MatchingService, p.matching)
	f(primitives.WorkerService, p.worker)
}

// hosts replaces gossip between services by what we know: there is no ring to
// join and to wait for.
func (p servicePorts) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts)
	p.each(func(service primitives.ServiceName, port int) {
		hosts[service] = static.SingleLocalHost(hostPort(port))
	})
	return hosts
}

func serverOptions(log log.Logger, db *database, ports servicePorts, historyEvents int) []temporal.ServerOption {
	return []temporal.ServerOption{
		temporal.WithConfig(serverConfig(db, ports)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(ports.hosts()),
		temporal.WithLogger(log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicConfig(historyEvents)),
	}
}

// serverConfig leaves out what would open more ports: HTTP, metrics, pprof.
func serverConfig(db *database, ports servicePorts) *config.Config {
	c := &config.Config{
		Services: make(map[string]config.Service),
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{storeName: {SQL: db.sql}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: hostPort(ports.frontend)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: hostPort(ports.frontend)},
	}
	c.Archival.History.State = "disabled"
	c.Archival.Visibility.State = "disabled"
	c.NamespaceDefaults.Archival.History.State = "disabled"
	c.NamespaceDefaults.Archival.Visibility.State = "disabled"
	ports.each(func(service primitives.ServiceName, port int) {
		c.Services[string(service)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
	})
	return c
}
