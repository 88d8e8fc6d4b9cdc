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

// discard is a logger without output.
var discard = slog.New(slog.DiscardHandler)

// servicePorts are the gRPC ports of Temporal's four services. The services use TCP to reach each
// other even within one process.
type servicePorts struct {
	frontend, history, matching, worker int
}

// temporalPorts returns the ports of the four services: those of the block, and for the frontend the
// port frontend unless it is 0. Errors: *PortError.
func temporalPorts(frontend int, block *portBlock) (servicePorts, error) {
	ports := servicePorts{frontend: block.port(1), history: block.port(2), matching: block.port(3), worker: block.port(4)}
	if frontend != 0 {
		if err := probePort("Temporal", "--temporal-port", frontend); err != nil {
			return servicePorts{}, err
		}
		ports.frontend = frontend
	}
	return ports, nil
}

// each calls f for each service.
func (p servicePorts) each(f func(service primitives.ServiceName, port int)) {
	f(primitives.FrontendService, p.frontend)
	f(primitives.HistoryService, p.history)
	f(primitives.MatchingService, p.matching)
	f(primitives.WorkerService, p.worker)
}

// hosts returns the addresses of all services. They replace Temporal's gossip, so no service has to
// join a membership ring and to wait for it.
func (p servicePorts) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts)
	p.each(func(service primitives.ServiceName, port int) {
		hosts[service] = static.SingleLocalHost(hostPort(port))
	})
	return hosts
}

// serverOptions returns the options of the embedded server. o has the settings of its dynamic configuration.
func serverOptions(log log.Logger, db *database, ports servicePorts, o Options) []temporal.ServerOption {
	return []temporal.ServerOption{
		temporal.WithConfig(serverConfig(db, ports)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(ports.hosts()),
		temporal.WithLogger(log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicConfig(o)),
	}
}

// serverConfig returns Temporal's configuration. It leaves out HTTP, metrics and pprof, which would
// open further ports.
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
