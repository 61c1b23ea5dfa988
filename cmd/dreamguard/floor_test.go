package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const floorConfig = "server:\n  host: 127.0.0.1\n  port: 80\nlimits:\n  maxSteps: 10\n"

func floorFiles(t *testing.T) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	config = filepath.Join(dir, "agent.yaml")
	for name, text := range map[string]string{
		"agent.yaml":  floorConfig,
		"same.yaml":   "limits: {maxSteps: 20}\nserver: {port: 80, 'host': \"127.0.0.1\"}\n",
		"open.yaml":   strings.Replace(floorConfig, "127.0.0.1", "0.0.0.0", 1),
		"broken.yaml": "server: [",
		"patch.json":  `[{"op": "remove", "path": "/server/host"}]`,
		"merge.json":  `{"limits": {"maxSteps": 5}}`,
		"call.json":   `{"tool": "bash", "arguments": {"command": "rm agent.yaml"}}`,
		"hold.json":   `{"tool": "bash", "arguments": "{\"command\": \"frob ` + config + `\"}"}`,
		"rules.yaml":  "rules: [{name: steps, path: limits.maxSteps, reason: enough}]\n",
		"bad.yaml":    "rules: []\n",
		"batch.jsonl": `{"id": 1, "format": "path", "before": null, "change": {"path": "server.host", "value": "x"}}` + "\n" + `{"id": 2, "format": "json", "before": "{}", "change": "{\"a\": 1}"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, config
}

func TestFloorCheck(t *testing.T) {
	dir, _ := floorFiles(t)
	for _, c := range []struct {
		line string
		want exitCode
		text string
	}{
		{"check --path limits.maxSteps --value 5", exitDone, "permit"},
		{"check --path server.host --value-text 0.0.0.0", exitBlock, "server-host"},
		{"check --path server.host --remove", exitBlock, "server-host"},
		{"check --before DIR/agent.yaml DIR/same.yaml", exitDone, "permit"},
		{"check --before DIR/agent.yaml DIR/open.yaml", exitBlock, "for a person to decide"},
		{"check --before DIR/agent.yaml DIR/open.yaml --json", exitBlock, `"rule": "server-host"`},
		{"check --before DIR/agent.yaml DIR/broken.yaml", exitFailure, "cannot be read"},
		{"check --before DIR/agent.yaml --patch DIR/patch.json", exitBlock, "cannot be removed"},
		{"check --before DIR/agent.yaml --merge-patch DIR/merge.json", exitDone, "permit"},
		{"check --rules DIR/rules.yaml --before DIR/agent.yaml --merge-patch DIR/merge.json", exitBlock, "enough"},
		{"check --rules DIR/bad.yaml --path x --value 1", exitUsage, "minItems"},
		{"check --rules none --path x --value 1", exitUsage, "default, paper and tighten"},
		{"check --call DIR/hold.json --sealed DIR/agent.yaml", exitHold, "a person decides"},
		{"check --batch DIR/batch.jsonl", exitDone, "permitted 1, refused 1"},
		{"check", exitUsage, "give one change"},
		{"check --path x", exitUsage, "wants one of --value"},
		{"check --path x --value nojson", exitUsage, "is not JSON"},
		{"check --path x --value 1 DIR/open.yaml", exitUsage, "give one change"},
		{"check --path x --value 1 --format ini", exitUsage, "want yaml, json, jsonc or toml"},
		{"apply DIR/agent.yaml", exitUsage, "--document"},
		{"check DIR/none.yaml", exitFailure, "no such file"},
		{"check DIR/batch.jsonl", exitUsage, "says no format"},
		{"diff DIR/agent.yaml DIR/open.yaml", exitBlock, "server.host cannot be changed"},
		{"diff DIR/agent.yaml DIR/same.yaml", exitDone, "no protected field changes"},
		{"lint DIR/agent.yaml", exitDone, "rule allow-from"},
		{"lint --strict DIR/agent.yaml", exitBlock, "rule allow-from"},
		{"study --agent nobody", exitUsage, "want obedient, careless or adversarial"},
		{"study --agent obedient --arms none,floor --kinds direct --wordings 1 --phases=false", exitDone, "| floor | 6/6"},
	} {
		args := append([]string{"floor"}, strings.Fields(strings.ReplaceAll(c.line, "DIR", dir))...)
		r := run(t, args...)
		if r.code != c.want || !strings.Contains(r.stdout+r.stderr, c.text) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want exit %d and %q", c.line, r.code, r.stdout, r.stderr, c.want, c.text)
		}
	}
}

func TestFloorBatch(t *testing.T) {
	dir, _ := floorFiles(t)
	r := run(t, "floor", "check", "--batch", filepath.Join(dir, "batch.jsonl"), "--json")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != exitDone || len(lines) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"refuse", "permit"} {
		var d floor.BatchDecision
		if err := json.Unmarshal([]byte(lines[i]), &d); err != nil || d.Decision.String() != want {
			t.Errorf("%s: %v", lines[i], err)
		}
	}
}

func TestFloorFiles(t *testing.T) {
	dir, config := floorFiles(t)
	if r := run(t, "floor", "verify", config); r.code != exitBlock || !strings.Contains(r.stdout, "no seal") {
		t.Errorf("verify without a seal: %+v", r)
	}
	if r := run(t, "floor", "seal", config); r.code != exitDone || !strings.Contains(r.stdout, "sealed 1 protected field") {
		t.Errorf("seal: %+v", r)
	}
	if r := run(t, "floor", "apply", config, "--path", "limits.maxSteps", "--value", "60"); r.code != exitDone {
		t.Errorf("apply: %+v", r)
	}
	if r := run(t, "floor", "apply", config, "--path", "server.host", "--value", `"x"`); r.code != exitBlock {
		t.Errorf("apply of a protected field: %+v", r)
	}
	if r := run(t, "floor", "apply", config, "--document", filepath.Join(dir, "open.yaml")); r.code != exitBlock {
		t.Errorf("apply of a document: %+v", r)
	}
	if r := run(t, "floor", "verify", config); r.code != exitDone {
		t.Errorf("verify: %+v", r)
	}
	text, err := os.ReadFile(config)
	if err != nil || !bytes.Contains(text, []byte("maxSteps: 60")) || !bytes.Contains(text, []byte("host: 127.0.0.1")) {
		t.Errorf("%s %v", text, err)
	}
	if err := os.WriteFile(config, bytes.Replace(text, []byte("127.0.0.1"), []byte("0.0.0.0"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "floor", "verify", "--json", config); r.code != exitBlock || !strings.Contains(r.stdout, "server.host was changed") {
		t.Errorf("verify of a changed file: %+v", r)
	}
	if r := run(t, "floor", "apply", config, "--path", "limits.maxSteps", "--value", "1"); r.code != exitFailure || !strings.Contains(r.stderr, "seal is broken") {
		t.Errorf("apply under a broken seal: %+v", r)
	}
}

// The binary as an MCP server on standard input and output, with a client of the
// SDK.
func TestFloorMCP(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	_, config := floorFiles(t)
	bin := filepath.Join(t.TempDir(), "dreamguard")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(bin, "floor", "mcp", config)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, refused := range map[string]bool{"limits.maxSteps": false, "server.host": true} {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "config_set", Arguments: map[string]any{"path": path, "value": 42}})
		if err != nil || r.IsError != refused {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	text, err := os.ReadFile(config)
	if err != nil || !bytes.Contains(text, []byte("maxSteps: 42")) || !bytes.Contains(text, []byte("host: 127.0.0.1")) {
		t.Errorf("%s %v", text, err)
	}
}
