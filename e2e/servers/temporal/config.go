package main

import (
	"log/slog"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	loopback = "127.0.0.1"
	// shards is the minimum of a small production installation; the default of the images is 4.
	shards      = 4
	connections = 10
)

var quiet = slog.New(slog.DiscardHandler)

// services are Temporal's services in the order of their ports.
var services = []primitives.ServiceName{
	primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService,
}

func (s settings) address(service int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(s.port+service))
}

func (s settings) frontend() string { return s.address(0) }

// options returns the options of the server. Closing over ends the watch of the dynamic
// configuration.
func (s settings) options(over <-chan any) ([]temporal.ServerOption, error) {
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error", Stdout: false}))
	dynamic, err := dynamicconfig.NewFileBasedClient(
		&dynamicconfig.FileBasedClientConfig{Filepath: s.dynamicConfig, PollInterval: time.Minute}, logger, over)
	if err != nil {
		return nil, err
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, service := range services {
		hosts[service] = static.SingleLocalHost(s.address(i))
	}
	return []temporal.ServerOption{
		temporal.WithConfig(s.config()),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(dynamic),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
	}, nil
}

func (s settings) config() *config.Config {
	c := &config.Config{
		Services: map[string]config.Service{},
		Persistence: config.Persistence{
			DefaultStore: database, VisibilityStore: visibilityDatabase, NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{
				database: {SQL: s.store(database)}, visibilityDatabase: {SQL: s.store(visibilityDatabase)},
			},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{
				"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: s.frontend()},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: s.frontend()},
	}
	c.Archival.History.State, c.Archival.Visibility.State = "disabled", "disabled"
	c.NamespaceDefaults.Archival.History.State, c.NamespaceDefaults.Archival.Visibility.State = "disabled", "disabled"
	for i, service := range services {
		c.Services[string(service)] = config.Service{RPC: config.RPC{GRPCPort: s.port + i, BindOnIP: loopback}}
	}
	return c
}

func (s settings) store(name string) *config.SQL {
	return &config.SQL{
		PluginName: plugin, ConnectProtocol: "tcp", ConnectAddr: s.postgres, DatabaseName: name, User: s.user,
		MaxConns: connections, MaxIdleConns: connections, MaxConnLifetime: time.Hour,
	}
}
