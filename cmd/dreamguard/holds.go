package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/serve/httpapi"
	"github.com/spf13/cobra"
)

// holdsClient speaks with a service.
type holdsClient struct {
	server, tokenFile, ca string
}

func (c *holdsClient) register(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.server, "server", "http://127.0.0.1:8787", "address of the service")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the token of an approver; without it the variable DREAMGUARD_TOKEN")
	f.StringVar(&c.ca, "ca", "", "certificates that the service's one may be signed by, PEM, beside those of the system")
}

func (a *app) holdsCommand() *cobra.Command {
	c := new(holdsClient)
	cmd := &cobra.Command{
		Use:   "holds",
		Short: "List and answer the held calls of a service",
		Long: `Holds speaks with dreamguard serve. It needs the token of an approver, in a file that
--token-file names or in the variable DREAMGUARD_TOKEN. An answer holds for the call that
was shown: approve and deny show it and ask, or take its hash with --hash.`,
		Example: `  dreamguard holds list --token-file approver.token
  dreamguard holds approve F3T7WZXKLQK2O6YV4CMBHXJ3ND --token-file approver.token
  dreamguard holds deny F3T7WZXKLQK2O6YV4CMBHXJ3ND --hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.register(cmd)
	cmd.AddCommand(a.holdsListCommand(c), a.holdsAnswerCommand(c, "approve", "Let a held call be made"), a.holdsAnswerCommand(c, "deny", "Refuse a held call"))
	return cmd
}

func (a *app) holdsListCommand(c *holdsClient) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List held calls, the oldest first",
		Example: `  dreamguard holds list --token-file approver.token
  dreamguard holds list --all --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/v1/holds?state=pending"
			if all {
				path = "/v1/holds"
			}
			var list struct {
				Holds []httpapi.Hold `json:"holds"`
			}
			if err := c.do(cmd.Context(), http.MethodGet, path, nil, &list); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			w := &errWriter{w: a.stdout}
			for _, h := range list.Holds {
				left := string(h.State)
				if h.State == httpapi.HoldPending {
					left = fmt.Sprintf("%.0f s left", max(0, time.Until(h.Expires).Seconds()))
				} else if h.By != "" {
					left += " by " + oneline.Of(h.By, 40)
				}
				fmt.Fprintf(w, "%s  %-14s  %s  %s\n", oneline.Of(h.ID, 40), left, oneline.Of(h.Tool, 40), oneline.Of(h.Arguments, 80))
			}
			if len(list.Holds) == 0 {
				fmt.Fprintln(w, "no calls are held")
			}
			return w.err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that were answered as well")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) holdsAnswerCommand(c *holdsClient, verb, short string) *cobra.Command {
	var hash string
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: "  dreamguard holds " + verb + " F3T7WZXKLQK2O6YV4CMBHXJ3ND --token-file approver.token",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/v1/holds/" + url.PathEscape(args[0])
			if hash == "" {
				var h httpapi.Hold
				if err := c.do(cmd.Context(), http.MethodGet, path, nil, &h); err != nil {
					return err
				}
				if err := a.showHold(&h); err != nil {
					return err
				}
				fmt.Fprintf(a.stderr, "%s this call? Type yes: ", verb)
				line, err := bufio.NewReader(io.LimitReader(a.stdin, 1<<10)).ReadString('\n')
				if strings.TrimSpace(line) != "yes" {
					if errors.Is(err, io.EOF) {
						return usagef("holds %s: nobody answered: say which call is meant with --hash %s", verb, h.Hash)
					}
					return errors.New("nothing was done")
				}
				hash = h.Hash
			}
			var h httpapi.Hold
			if err := c.do(cmd.Context(), http.MethodPost, path+"/"+verb, map[string]string{"hash": hash}, &h); err != nil {
				return err
			}
			return a.printf("%s: %s\n", oneline.Of(h.ID, 40), h.State)
		},
	}
	cmd.Flags().StringVar(&hash, "hash", "", "hash of the call that is meant, as holds list --json shows it: asks nothing")
	return cmd
}

// showHold shows a call. Nothing of it can move the cursor or hide.
func (a *app) showHold(h *httpapi.Hold) error {
	w := &errWriter{w: a.stdout}
	fmt.Fprintf(w, "tool:      %s\narguments: %s\n", visible(h.Tool), visible(h.Arguments))
	for _, x := range [...][2]string{{"agent:    ", h.Text}, {"task:     ", h.Task}, {"why:      ", h.Reason}} {
		if x[1] != "" {
			fmt.Fprintf(w, "%s %s\n", x[0], visible(x[1]))
		}
	}
	fmt.Fprintf(w, "session:   %s of %s\nhash:      %s\n", visible(h.Session), visible(h.Owner), visible(h.Hash))
	return w.err
}

// visible shows every character that is not plainly one as an escape.
func visible(s string) string {
	q := fmt.Sprintf("%+q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

const maxHoldsAnswer = 64 << 20 // bytes

func (c *holdsClient) do(ctx context.Context, method, path string, body, into any) error {
	token := os.Getenv("DREAMGUARD_TOKEN")
	if c.tokenFile != "" {
		b, err := boundedfile.Read(c.tokenFile, 1<<10)
		if err != nil {
			return err
		}
		token = string(b)
	}
	if token = strings.TrimSpace(token); token == "" {
		return usagef("holds: there is no token: name its file with --token-file, or set DREAMGUARD_TOKEN")
	}
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.server, "/")+path, in)
	if err != nil {
		return usagef("holds: --server: %v", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	r, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("holds: %w", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, maxHoldsAnswer))
	if err != nil {
		return fmt.Errorf("holds: %w", err)
	}
	if r.StatusCode != http.StatusOK {
		var e struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(b, &e) != nil || e.Error.Message == "" {
			return fmt.Errorf("holds: %s answered %s", c.server, r.Status)
		}
		return fmt.Errorf("holds: %s", oneline.Of(e.Error.Message, 400))
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("holds: the answer of %s cannot be read: %w", c.server, err)
	}
	return nil
}

func (c *holdsClient) client() (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if c.ca != "" {
		b, err := boundedfile.Read(c.ca, 1<<20)
		if err != nil {
			return nil, err
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("holds: %s holds no certificate", c.ca)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token goes where it was meant to
	}}, nil
}
