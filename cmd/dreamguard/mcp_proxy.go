package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/serve"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// maxTask bounds a task's file in bytes: package guard reads no more.
const maxTask = 1 << 20

func (a *app) mcpProxyCommand() *cobra.Command {
	var (
		g              guardFlags
		task, taskFile string
		holdFor        time.Duration
	)
	cmd := &cobra.Command{
		Use:   "mcp-proxy --artifact DIR [flags] -- COMMAND [ARGUMENT...]",
		Short: "Judge the calls between an MCP client and a server",
		Long: `Mcp-proxy starts an MCP server, speaks with it over its standard input and output, and
is itself such a server to the client that started it. It judges tools/call; all else
passes as it is. A refused call is answered with a tool result that says why. A held
call is put to the user where the client can do that (elicitation).

Put it in front of the command of a server in the client's configuration. One
connection is one run of an agent; --task says what the user wants, where that is known.`,
		Example: `  dreamguard mcp-proxy --artifact runs/p1/artifact -- npx -y @modelcontextprotocol/server-filesystem /data
  dreamguard mcp-proxy --artifact runs/p1/artifact --mode audit --task "tidy up the inbox" -- mail-server`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, command []string) error {
			settings, err := g.settings("mcp-proxy")
			switch {
			case err != nil:
				return err
			case task != "" && taskFile != "":
				return usagef("mcp-proxy: --task and --task-file exclude each other")
			case holdFor <= 0:
				return usagef("mcp-proxy: --hold-for %v: want more than 0", holdFor)
			}
			if taskFile != "" {
				b, err := boundedfile.Read(taskFile, maxTask)
				if err != nil {
					return err
				}
				task = string(b)
			}
			p := &serve.Proxy{Settings: settings, Task: guard.Task{Instruction: task}, Run: "mcp-" + rand.Text(), HoldFor: holdFor, Record: g.record}
			defer g.close()
			model := ""
			if p.Model, p.Broken = g.open("", serve.Digests{}); p.Broken == nil {
				model = fmt.Sprintf("; model %.12s", p.Model.Digest())
			} else if settings.Failed() == serve.Deny {
				return p.Broken
			}
			fmt.Fprintf(a.stderr, "dreamguard: %s%s\n", settings, model)
			if p.Broken != nil {
				fmt.Fprintf(a.stderr, "dreamguard: no call is judged: %v\n", p.Broken)
			}
			server := exec.Command(command[0], command[1:]...)
			server.Stderr = a.stderr
			client := &mcp.IOTransport{Reader: io.NopCloser(a.stdin), Writer: unclosed{a.stdout}, MaxLineLength: serve.MaxEvent}
			return p.Serve(cmd.Context(), client, &mcp.CommandTransport{Command: server})
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the server's name is the server's
	g.register(cmd, "ask")
	f := cmd.Flags()
	f.StringVar(&task, "task", "", "what the user wants of the agent")
	f.StringVar(&taskFile, "task-file", "", "file with that")
	f.DurationVar(&holdFor, "hold-for", serve.DefaultHold, "how long a held call waits for the user")
	return cmd
}

// unclosed leaves a writer open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
