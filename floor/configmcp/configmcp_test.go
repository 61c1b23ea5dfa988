package configmcp

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const config = `# The agent.
server:
  host: 127.0.0.1 # loopback only
limits:
  maxSteps: 10
tools:
  pinned: [now]
  untrusted:
    onMutate: refuse
`

// connect starts a server on a file and returns a client of the SDK.
func connect(t *testing.T) (*mcp.ClientSession, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := floor.Guard(file, floor.Default(), floor.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, server := mcp.NewInMemoryTransports()
	ctx := context.Background()
	ss, err := NewServer(g, "test").Connect(ctx, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		ss.Wait() //nolint:errcheck // the client closed it
	})
	return cs, file
}

func call(t *testing.T, cs *mcp.ClientSession, tool string, args any) (text string, isError bool) {
	t.Helper()
	r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, r.IsError
}

func TestTools(t *testing.T) {
	cs, _ := connect(t)
	r, err := cs.ListTools(context.Background(), nil)
	if err != nil || len(r.Tools) != 2 || r.Tools[0].Name != "config_get" || r.Tools[1].Name != "config_set" {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestGet(t *testing.T) {
	cs, _ := connect(t)
	for path, want := range map[string]string{
		"server.host":     `"value":"127.0.0.1"`,
		"limits.maxSteps": `"value":10`,
		"tools.pinned[0]": `"value":"now"`,
		"nothing.here":    `"set":false`,
		"":                `"maxSteps":10`,
	} {
		if got, isError := call(t, cs, "config_get", map[string]any{"path": path}); isError || !strings.Contains(strings.ReplaceAll(got, " ", ""), want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestSet(t *testing.T) {
	cs, file := connect(t)
	if text, isError := call(t, cs, "config_set", map[string]any{"path": "limits.maxSteps", "value": 60}); isError {
		t.Fatal(text)
	}
	if text, isError := call(t, cs, "config_set", map[string]any{"path": "tools.untrusted.onMutate", "value": "confirm"}); isError {
		t.Fatal(text)
	}
	if text, isError := call(t, cs, "config_set", map[string]any{"path": "tools.pinned", "value": []string{"now", "exec"}}); isError {
		t.Fatal(text)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"maxSteps: 60", "onMutate: confirm", "- exec", "# loopback only", "# The agent."} {
		if !strings.Contains(string(before), want) {
			t.Errorf("%q is not in\n%s", want, before)
		}
	}
	for _, args := range []string{
		`{"path": "server.host", "value": "0.0.0.0"}`,
		`{"path": "SERVER[\"h\\u006fst\"]", "value": "0.0.0.0"}`,
		`{"path": "server", "value": {"enabled": true}}`,
		`{"path": "server", "remove": true}`,
		`{"path": "tools.untrusted.onMutate", "value": "allow"}`,
		`{"path": "tools.untrusted.onMutate", "value": null}`,
		`{"path": "tools", "value": "{\"policy\": {\"deny\": []}}"}`,
		`{"path": "plugins", "value": [{"allowFrom": ["*"]}]}`,
	} {
		text, isError := call(t, cs, "config_set", json.RawMessage(args))
		if !isError || !strings.Contains(text, "person") && !strings.Contains(text, "cannot") {
			t.Errorf("%s: error %t, %s", args, isError, text)
		}
	}
	for _, args := range []string{`{"path": "limits.maxSteps"}`, `{"path": "limits.maxSteps", "value": 1, "remove": true}`} {
		if text, isError := call(t, cs, "config_set", json.RawMessage(args)); !isError {
			t.Errorf("%s: %s", args, text)
		}
	}
	after, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused change was written:\n%s", after)
	}
}

// Many clients at once lose no change, and leave a whole file.
func TestConcurrent(t *testing.T) {
	cs, file := connect(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			path := "extra.k" + string(rune('a'+i))
			if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "config_set", Arguments: map[string]any{"path": path, "value": i}}); err != nil {
				t.Error(err)
			}
			if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "config_set", Arguments: map[string]any{"path": "server.host", "value": "x"}}); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if !strings.Contains(string(text), "k"+string(rune('a'+i))+":") {
			t.Errorf("change %d was lost:\n%s", i, text)
		}
	}
	if !strings.Contains(string(text), "host: 127.0.0.1") {
		t.Errorf("the host changed:\n%s", text)
	}
}
