package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shellServer is an MCP server over standard input and output whose tool bash
// answers with the command it was given: the test's program is it.
func shellServer() {
	type in struct {
		Command string `json:"command"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "shell", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "bash"}, func(_ context.Context, _ *mcp.CallToolRequest, x in) (*mcp.CallToolResult, any, error) {
		text := "ran " + x.Command
		if x.Command == "flood" {
			text = strings.Repeat("x", 5<<20)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A real client, the proxy and a real server, each a process of its own.
func TestMCPProxy(t *testing.T) {
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	for flags, want := range map[string][2]string{
		"--artifact " + hookArtifact:                   {"change the agent's own limits", "mode enforce, on error deny, on hold ask (fails closed); model "},
		"--artifact " + hookArtifact + " --mode audit": {"ran echo x > " + limits, "mode audit"},
		"--artifact /nowhere --on-error allow":         {"ran echo x > " + limits, "no call is judged"},
	} {
		cmd := exec.Command(os.Args[0], append(append([]string{"mcp-proxy", "--sealed", limits}, strings.Fields(flags)...), "--", os.Args[0], "shell-server")...)
		var errs syncBuffer
		cmd.Stderr = &errs
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", flags, err, errs.String())
		}
		call := func(command string) string {
			t.Helper()
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "bash", Arguments: map[string]string{"command": command}})
			if err != nil {
				t.Fatal(err)
			}
			return r.Content[0].(*mcp.TextContent).Text
		}
		if got := call("echo x > " + limits); !strings.Contains(got, want[0]) {
			t.Errorf("%s: %s, want %q", flags, got, want[0])
		}
		if got := call("ls"); got != "ran ls" {
			t.Errorf("%s: %s", flags, got)
		}
		if got := call("flood"); len(got) != 5<<20 {
			t.Errorf("%s: a result of 5 MiB came as %d bytes", flags, len(got))
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
		if !strings.Contains(errs.String(), want[1]) {
			t.Errorf("%s: stderr %q, want %q", flags, errs.String(), want[1])
		}
	}
}

func TestMCPProxyErrors(t *testing.T) {
	for line, want := range map[string]string{
		"mcp-proxy --artifact x":                             "requires at least 1 arg",
		"mcp-proxy -- server":                                "name the artifact with --artifact DIR",
		"mcp-proxy --artifact x --on-error maybe -- server":  "want deny or allow",
		"mcp-proxy --artifact x --task a --task-file b -- s": "exclude each other",
		"mcp-proxy --artifact x --hold-for 0s -- s":          "want more than 0",
	} {
		wantUsage(t, line, want)
	}
	for _, line := range []string{"--artifact /nowhere -- server", "--artifact " + hookArtifact + " -- /nowhere/server", "--artifact " + hookArtifact + " --task-file /nowhere -- server"} {
		if r := run(t, append([]string{"mcp-proxy"}, strings.Fields(line)...)...); r.code != exitFailure || !strings.Contains(r.stderr, "/nowhere") {
			t.Errorf("%s: %+v", line, r)
		}
	}
}
