package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"
)

// ErrInsecure: the address can be reached from other machines, and tokens or TLS
// are missing.
var ErrInsecure = errors.New("httpapi: not safe on this address")

// Limits of time and connections.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 20 * time.Second
	maxHeader      = 16 << 10
	maxConnections = 2048
)

// Serve answers the connections of l until ctx is done; requests that are under way
// then are finished. It refuses an address that other machines reach, without tokens
// and TLS: ErrInsecure.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !loopback(l.Addr()) && !s.c.Insecure && (s.c.TLS == nil || s.c.Tokens == nil) {
		l.Close()
		return fmt.Errorf("%w: %s is reached from other machines: use tokens and TLS, or 127.0.0.1", ErrInsecure, l.Addr())
	}
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, TLSConfig: s.c.TLS,
		ErrorLog: slog.NewLogLogger(s.c.Logger.Handler(), slog.LevelDebug),
	}
	l = netutil.LimitListener(l, maxConnections)
	ended := make(chan error, 1)
	go func() {
		if s.c.TLS != nil {
			ended <- srv.ServeTLS(l, "", "")
			return
		}
		ended <- srv.Serve(l)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.stop()
	late, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := srv.Shutdown(late); err != nil {
		srv.Close()
		return fmt.Errorf("requests were cut off: %w", err)
	}
	return nil
}

func loopback(a net.Addr) bool {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.Network() == "unix"
	}
	return p.Addr().Unmap().IsLoopback()
}
