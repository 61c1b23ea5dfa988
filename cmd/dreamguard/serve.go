package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/serve"
	"github.com/dreamguard/dreamguard/serve/httpapi"
	"github.com/spf13/cobra"
)

// serveFlags are the flags of "serve" beside those of every adapter.
type serveFlags struct {
	guardFlags
	listen, tokens, cert, key, holds string
	onExpiry, level, store, otlp     string
	hosts                            []string
	most                             int
	ttl, holdFor, timeout            time.Duration
	rate                             float64
	maxBody                          int64
	insecure                         bool
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve --artifact DIR",
		Short: "Judge the calls of agents over HTTP, and let people answer what is held",
		Long: `Serve judges over HTTP and JSON: start a session, judge each call before it is
executed, commit it with its result. /openapi.json describes every request; the page at /
shows sessions and held calls to who has the token of an approver. It stops with SIGTERM
after the requests under way, and reads artifact and tokens anew with SIGHUP.

Without --tokens whoever reaches the address may use it, and nobody can answer a held
call. Addresses that other machines reach need tokens and TLS. docs/how-to/serve.md shows
how to set it up.`,
		Example: `  dreamguard serve --artifact runs/p1/artifact
  dreamguard serve token --tokens tokens --name me --role approver
  dreamguard serve --artifact runs/p1/artifact --tokens tokens --log decisions.jsonl --holds holds.jsonl
  dreamguard serve --artifact runs/p1/artifact --tokens tokens --listen 0.0.0.0:8787 --tls-cert cert.pem --tls-key key.pem --host guard.example`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	f.register(cmd, "ask")
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8787", "address to listen on")
	fs.StringVar(&f.tokens, "tokens", "", "file of accepted tokens, see serve token")
	fs.StringVar(&f.cert, "tls-cert", "", "certificate, PEM; with it the service speaks HTTPS only")
	fs.StringVar(&f.key, "tls-key", "", "its key, PEM")
	fs.StringArrayVar(&f.hosts, "host", nil, "name by which clients call this service, beside addresses and localhost; may be repeated")
	fs.BoolVar(&f.insecure, "allow-insecure", false, "listen on an address that other machines reach without tokens or TLS")
	fs.StringVar(&f.holds, "holds", "", "file that keeps held calls over a restart; it has their arguments in the clear")
	fs.DurationVar(&f.holdFor, "hold-for", serve.DefaultHold, "how long a held call waits for a person")
	fs.StringVar(&f.onExpiry, "on-expiry", "deny", "what becomes of a held call that nobody answered: deny or allow")
	fs.StringVar(&f.store, "store", "memory", "where sessions are: memory, redis://[:PASSWORD@]HOST:PORT[/DB], or @FILE that holds such an address")
	fs.IntVar(&f.most, "max-sessions", httpapi.DefaultSessions, "sessions that may be open at once")
	fs.DurationVar(&f.ttl, "session-ttl", httpapi.DefaultTTL, "after how long without a request a session is forgotten")
	fs.DurationVar(&f.timeout, "timeout", httpapi.DefaultTimeout, "how long a verdict may take; then the call is held")
	fs.Int64Var(&f.maxBody, "max-body", httpapi.DefaultMaxBody, "bytes of a request")
	fs.Float64Var(&f.rate, "rate", httpapi.DefaultRate, "requests per second of one client; 0 for no limit")
	fs.StringVar(&f.otlp, "otlp", "", "address to send OpenTelemetry spans to, OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; they hold no payload")
	fs.StringVar(&f.level, "log-level", "info", "of messages on standard error: debug (every request), info, warn or error; none holds a payload")
	cmd.AddCommand(a.serveTokenCommand(), a.serveHealthCommand())
	return cmd
}

func (f *serveFlags) check() (serve.Settings, slog.Level, error) {
	var level slog.Level
	settings, err := f.settings("serve")
	switch {
	case err != nil:
		return settings, level, err
	case level.UnmarshalText([]byte(f.level)) != nil:
		return settings, level, usagef("serve: --log-level %q: want debug, info, warn or error", f.level)
	case (f.cert == "") != (f.key == ""):
		return settings, level, usagef("serve: --tls-cert and --tls-key go together")
	case f.onExpiry != string(serve.DenyOnError) && f.onExpiry != string(serve.AllowOnError):
		return settings, level, usagef("serve: --on-expiry %q: want deny or allow", f.onExpiry)
	case f.holdFor <= 0 || f.ttl <= 0 || f.timeout <= 0 || f.most < 1 || f.maxBody < 1 || f.rate < 0:
		return settings, level, usagef("serve: --hold-for, --session-ttl, --timeout, --max-sessions and --max-body must be above 0, --rate not below it")
	}
	return settings, level, nil
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	settings, level, err := f.check()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	for _, file := range []string{f.tokens, f.holds, f.cert, f.key} {
		if file != "" {
			f.contained.Sealed = append(f.contained.Sealed, file)
		}
	}
	if f.rate == 0 {
		f.rate = -1
	}
	store, err := f.openStore(ctx, logger)
	if err != nil {
		return err
	}
	if r, ok := store.(*httpapi.Redis); ok {
		defer r.Close()
	}
	c := httpapi.Config{
		Settings: settings, Record: f.record, Store: store, HoldFile: f.holds, HoldFor: f.holdFor,
		OnExpiry: serve.Failure(f.onExpiry), Timeout: f.timeout, MaxBody: f.maxBody, Rate: f.rate, Hosts: f.hosts, Insecure: f.insecure, Logger: logger,
		Open: func() (*guard.Model, error) { return f.open("", serve.Digests{}) },
	}
	if f.log == "" {
		c.Record = nil
	}
	if f.otlp != "" {
		traces, err := tracesTo(ctx, f.otlp)
		if err != nil {
			return err
		}
		defer func() {
			late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := traces.Shutdown(late); err != nil {
				logger.Warn("the last spans were not sent", "error", err)
			}
		}()
		c.Traces = traces
	}
	if f.tokens != "" {
		c.Tokens = func() (*httpapi.Tokens, error) { return httpapi.ReadTokens(f.tokens) }
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("serve: --tls-cert, --tls-key: %w", err)
		}
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	defer f.close()
	s, err := httpapi.New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	scheme := "http"
	if c.TLS != nil {
		scheme = "https"
	}
	fmt.Fprintf(a.stderr, "dreamguard: %s; %s://%s\n", s, scheme, l.Addr())
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-again:
			}
			if err := s.Reload(); err != nil {
				logger.Error("reload failed: all stays as it was", "error", err)
				continue
			}
			logger.Info("reloaded", "state", s.String())
		}
	}()
	return s.Serve(ctx, l)
}

// openStore makes the store that --store names.
func (f *serveFlags) openStore(ctx context.Context, logger *slog.Logger) (httpapi.Store, error) {
	url := f.store
	if file, ok := strings.CutPrefix(url, "@"); ok {
		b, err := boundedfile.Read(file, 4<<10)
		if err != nil {
			return nil, err
		}
		url = strings.TrimSpace(string(b))
	}
	if url == "memory" {
		return httpapi.NewMemory(f.most, f.ttl), nil
	}
	if !strings.HasPrefix(url, "redis://") && !strings.HasPrefix(url, "rediss://") {
		return nil, usagef("serve: --store: want memory, redis://HOST:PORT or @FILE")
	}
	r, err := httpapi.NewRedis(url, f.most, f.ttl)
	if err != nil {
		return nil, usagef("serve: --store: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.Check(ctx); err != nil {
		r.Close()
		return nil, fmt.Errorf("serve: --store: %w", err)
	}
	if durable, err := r.Durable(ctx); err != nil || !durable {
		logger.Warn("Redis may lose sessions when it crashes: set appendonly yes and appendfsync always")
	}
	return r, nil
}

func (a *app) serveTokenCommand() *cobra.Command {
	var file, name, role string
	cmd := &cobra.Command{
		Use:   "token --tokens FILE --name NAME --role agent|approver|metrics|admin",
		Short: "Make a token for serve",
		Long: `Token makes a random token, prints it, and adds its hash to the file: the token itself
is kept nowhere else. A service that runs takes it up with SIGHUP. To withdraw a token,
remove its line. An agent must never have the token of an approver: it would answer for
its own calls.`,
		Example: `  dreamguard serve token --tokens tokens --name ci --role agent
  dreamguard serve token --tokens tokens --name me --role approver`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if file == "" || name == "" || role == "" {
				return usagef("serve token: --tokens, --name and --role are required")
			}
			secret, err := addToken(file, name, httpapi.Role(role))
			if err != nil {
				return err
			}
			return a.printf("%s\n", secret)
		},
	}
	cmd.Flags().StringVar(&file, "tokens", "", "file to add it to; it is made if it is not there")
	cmd.Flags().StringVar(&name, "name", "", "whose token it is: stands in logs and with the answers to held calls")
	cmd.Flags().StringVar(&role, "role", "", "what it is good for")
	return cmd
}
