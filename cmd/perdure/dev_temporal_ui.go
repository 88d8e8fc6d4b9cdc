package main

import (
	"context"
	"net"
	"strconv"

	"github.com/perdure/perdure/internal/process/devserver"
	"github.com/perdure/perdure/internal/process/temporalui"
)

// listenUI opens the listener of Temporal's UI, unless the options turn the UI off. Errors:
// *devserver.PortError.
func (p *devProcess) listenUI(ctx context.Context) (err error) {
	port := p.options.temporalUIPort
	if port == -1 {
		return nil
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if p.uiListener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
		return &devserver.PortError{Server: "Temporal's UI", Flag: "--temporal-ui-port", Port: port, Err: err}
	}
	p.onClose(func() error {
		_ = p.uiListener.Close() // the UI has closed it, if that has started
		return nil
	})
	return nil
}

// startUI starts Temporal's UI on its listener.
func (p *devProcess) startUI(context.Context) error {
	if p.uiListener == nil {
		return nil
	}
	ui, err := temporalui.Start(temporalui.Config{
		Listener: p.uiListener, Temporal: p.servers.TemporalAddress(), Namespace: p.servers.Namespace(), Logger: p.logger,
	})
	if err != nil {
		return err
	}
	p.onClose(ui.Stop)
	return nil
}

// uiURL returns the URL of Temporal's UI; "" = there is none.
func (p *devProcess) uiURL() string {
	if p.uiListener == nil {
		return ""
	}
	return "http://" + p.uiListener.Addr().String()
}
