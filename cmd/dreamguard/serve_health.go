package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) serveHealthCommand() *cobra.Command {
	c := new(holdsClient)
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a service whether it can judge",
		Long:  `Health asks /readyz, for container images that hold no other program. Exit codes: 0 it can, 1 it cannot.`,
		Example: `  dreamguard serve health
  dreamguard serve health --server https://guard.example:8787 --ca ca.pem`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, strings.TrimSuffix(c.server, "/")+"/readyz", nil)
			if err != nil {
				return usagef("serve health: --server: %v", err)
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			r, err := client.Do(req)
			if err != nil {
				return fmt.Errorf("serve health: %w", err)
			}
			r.Body.Close()
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("serve health: %s answered %s", c.server, r.Status)
			}
			return a.printf("ready\n")
		},
	}
	cmd.Flags().StringVar(&c.server, "server", "http://127.0.0.1:8787", "address of the service")
	cmd.Flags().StringVar(&c.ca, "ca", "", "certificates that the service's one may be signed by, PEM, beside those of the system")
	return cmd
}
