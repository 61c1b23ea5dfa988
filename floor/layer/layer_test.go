package layer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/verdict"
)

const config = `server:
  host: 127.0.0.1
tools:
  policy:
    deny: ["exec(rm *)"]
  untrusted:
    onMutate: confirm
limits:
  maxSteps: 10
`

func newLayer(t *testing.T) (*Layer, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := New(Options{Sealed: []string{file}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

const (
	pass  = floor.Permit
	hold  = floor.Hold
	block = floor.Refuse
)

func TestShell(t *testing.T) {
	l, dir := newLayer(t)
	if err := os.Symlink(filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "second")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		want    floor.Outcome
	}{
		// Writes by redirect.
		{`echo x > agent.yaml`, block},
		{`echo x >> ./agent.yaml`, block},
		{`echo x >| agent.yaml`, block},
		{`echo x &> agent.yaml`, block},
		{`: <> agent.yaml`, block},
		{`echo x > "agent.yaml"`, block},
		{`echo x > 'agent'.yaml`, block},
		{`echo x > agent\.yaml`, block},
		{`echo x > $'agent\x2eyaml'`, block},
		{`echo x > ` + dir + `/agent.yaml`, block},
		{`echo x > ../` + filepath.Base(dir) + `/agent.yaml`, block},
		{`echo x > AGENT.YAML`, block},
		{`echo x > other`, block},
		{`echo x > second`, block},
		{`F=agent.yaml; echo x > $F`, block},
		{`F=agent; echo x > "${F}.yaml"`, block},
		{`cd / && cd ` + dir + ` && echo x > agent.yaml`, block},
		{`cd /tmp; echo x > agent.yaml`, pass},
		{`cd "$D"; echo x > agent.yaml`, hold},
		{`echo x > agent.y?ml`, hold},
		{`echo x > "$DIR/agent.yaml"`, hold},
		{`cat <<EOF > agent.yaml` + "\nserver: {host: 0.0.0.0}\nEOF", block},
		{`{ echo a; echo b; } > agent.yaml`, block},
		{`(echo a) > agent.yaml`, block},
		{`if true; then echo x > agent.yaml; fi`, block},
		{`f() { echo x > agent.yaml; }; f`, block},
		{`echo $(echo x > agent.yaml)`, block},
		{`for f in agent.yaml; do echo x > $f; done`, block},
		// Commands that write.
		{`sed -i 's/confirm/allow/' agent.yaml`, block},
		{`sed -i.bak s/a/b/ agent.yaml`, block},
		{`sed -n -i s/a/b/ agent.yaml`, block},
		{`sed --in-place=.o s/a/b/ agent.yaml`, block},
		{`perl -pi -e 's/a/b/' agent.yaml`, block},
		{`yq -i '.server.host = "0.0.0.0"' agent.yaml`, block},
		{`echo x | tee agent.yaml`, block},
		{`echo x | tee -a /tmp/y agent.yaml`, block},
		{`echo x | sudo tee agent.yaml`, block},
		{`mv /tmp/new agent.yaml`, block},
		{`mv agent.yaml /tmp/`, block},
		{`mv /tmp/agent.yaml .`, block},
		{`cp /tmp/new agent.yaml`, block},
		{`cp /tmp/agent.yaml .`, block},
		{`cp -t . /tmp/agent.yaml`, block},
		{`cp /tmp/x agent.yaml.seal`, block},
		{`install -m 600 /tmp/new agent.yaml`, block},
		{`dd if=/tmp/new of=agent.yaml`, block},
		{`rm agent.yaml`, block},
		{`rm -rf -- agent.yaml`, block},
		{`truncate -s 0 agent.yaml`, block},
		{`ln -sf /tmp/new agent.yaml`, block},
		{`curl -o agent.yaml http://x`, block},
		{`sort -o agent.yaml agent.yaml`, block},
		{`python -c "open('agent.yaml','w').write('x')"`, block},
		{`python3 -c 'import yaml; yaml.dump({}, open("agent.yaml", "w"))'`, block},
		{`node -e "fs.writeFileSync('agent.yaml', 'x')"`, block},
		{`bash -c 'echo x > agent.yaml'`, block},
		{`sh -ec "sed -i s/a/b/ agent.yaml"`, block},
		{`eval "echo x > agent.yaml"`, block},
		{`env A=1 nice -n 10 tee agent.yaml`, block},
		{`timeout 5 tee agent.yaml`, block},
		{`echo 'echo x > agent.yaml' | sh`, block},
		{"bash <<'EOF'\necho x > agent.yaml\nEOF", block},
		{`find . -name agent.yaml -exec sed -i s/a/b/ {} \;`, block},
		// Not understood, and a sealed file is touched.
		{`ln agent.yaml /tmp/second`, hold},
		{`python edit.py agent.yaml`, hold},
		{`frobnicate agent.yaml`, hold},
		{`frobnicate --file=agent.yaml`, hold},
		{`chmod 777 agent.yaml`, hold},
		{`vim -c wq agent.yaml`, hold},
		{`git checkout -- agent.yaml`, hold},
		{`find . -name agent.yaml -delete`, hold},
		{`echo x > agent.yaml'`, hold}, // no valid shell
		{`python -c "print(open('agent.yaml').read())"`, hold},
		{`sed -n 'w agent.yaml' x`, hold},
		{"python <<'EOF'\nopen('agent.yaml')\nEOF", hold},
		{`base64 -d x | python agent.yaml`, hold},
		{`rm -rf ` + dir, hold},
		// Reading, and work on other files.
		{`cat agent.yaml`, pass},
		{`grep host agent.yaml | head -1`, pass},
		{`cp agent.yaml /tmp/copy`, pass},
		{`diff agent.yaml other.yaml > /tmp/d`, pass},
		{`sed s/a/b/ agent.yaml`, pass},
		{`yq .server agent.yaml`, pass},
		{`git status && git diff agent.yaml`, pass},
		{`echo agent.yaml`, pass},
		{`echo x > my-agent.yaml`, pass},
		{`echo x > agent.yaml.md`, pass},
		{`rm -rf build && make`, pass},
		{`for i in 1 2 3; do echo $i > out.$i; done`, pass},
		{`echo x > "$OUT"`, pass},
		{`python -c 'print(1)'`, pass},
		{`ls *.yaml`, pass},
		{`echo 'unbalanced`, pass},
	} {
		args, err := json.Marshal(map[string]string{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		got := l.Decide(verdict.Call{Tool: "bash", Arguments: string(args)})
		if got.Outcome != c.want {
			t.Errorf("%s: %v (%s), want %v", c.command, got.Outcome, got.Reason, c.want)
		}
	}
}

func TestTools(t *testing.T) {
	l, dir := newLayer(t)
	for _, c := range []struct {
		tool, args string
		want       floor.Outcome
	}{
		{"config_set", `{"path": "server.host", "value": "0.0.0.0"}`, block},
		{"config_set", `{"path": "limits.maxSteps", "value": 60}`, pass},
		{"mcp__agent__config_set", `{"path": "tools.untrusted.onMutate", "value": "allow"}`, block},
		{"ConfigSet", `{"Path": "tools.untrusted.onMutate", "Value": "confirm"}`, pass},
		{"config_set", `{"path": "limits.x", "path": "server.host", "value": 1}`, block},
		{"config_set", `not json`, block},
		{"config_set", `{"path": "tools.policy", "value": {"mode": "allow"}}`, block}, // deny would go
		{"config_set", `{"path": "tools.policy.deny"}`, block},
		{"config_set", `{"path": 5, "value": 1}`, hold},
		{"config.patch", `{"patch": [{"op": "remove", "path": "/server/host"}]}`, block},
		{"config.patch", `{"patch": "[{\"op\": \"replace\", \"path\": \"/limits/maxSteps\", \"value\": 3}]"}`, pass},
		{"write_file", `{"path": "agent.yaml", "content": "server: {host: 0.0.0.0}"}`, block},
		{"write_file", `{"path": "./AGENT.yaml", "content": ""}`, block},
		{"write_file", fmt.Sprintf(`{"path": "agent.yaml", "content": %q}`, config+"x: 1\n"), pass},
		{"write_file", fmt.Sprintf(`{"path": %q, "content": "x"}`, filepath.Join(dir, "agent.yaml.seal")), block},
		{"write_file", `{"path": "notes.md", "content": "agent.yaml is the config"}`, pass},
		{"Edit", `{"file_path": "agent.yaml", "old_string": "confirm", "new_string": "allow"}`, block},
		{"Edit", `{"file_path": "agent.yaml", "old_string": "maxSteps: 10", "new_string": "maxSteps: 20"}`, pass},
		{"Edit", `{"file_path": "agent.yaml", "old_string": "nowhere", "new_string": "x"}`, hold},
		{"read_file", `{"path": "agent.yaml"}`, pass},
		{"deploy", `{"file": "agent.yaml"}`, hold},
		{"deploy", `{"file": "a\u0067ent.yaml"}`, hold},
		{"deploy", `{"file": "app.yaml"}`, pass},
		{"exec", `{"command": ["tee", "agent.yaml"]}`, block},
		{"exec", `{"command": ["bash", "-c", "echo x > agent.yaml"]}`, block},
		{"exec", `{"workdir": "/", "command": "echo x > agent.yaml"}`, pass},
		{"exec", `echo x > agent.yaml`, block},
		{"exec", `{"run": "agent.yaml"}`, hold},
		{"", `agent.yaml`, pass}, // a message
	} {
		got := l.Decide(verdict.Call{Tool: c.tool, Arguments: c.args})
		if got.Outcome != c.want {
			t.Errorf("%s %s: %v (%s), want %v", c.tool, c.args, got.Outcome, got.Reason, c.want)
		}
	}
}

func TestNested(t *testing.T) {
	l, _ := newLayer(t)
	command := "echo x > agent.yaml"
	for range 12 {
		command = "eval " + quote(command)
	}
	if d := l.shell(command); d.Outcome == floor.Permit {
		t.Errorf("a command 12 levels deep passes")
	}
}

func TestJudge(t *testing.T) {
	l, _ := newLayer(t)
	for args, want := range map[string]verdict.Decision{
		`{"command": "rm agent.yaml"}`:    verdict.Block,
		`{"command": "frob agent.yaml"}`:  verdict.Hold,
		`{"command": "cat agent.yaml"}`:   verdict.Pass,
		`{"command": "ls -l | sort -rn"}`: verdict.Pass,
	} {
		d, reasons, plan := l.Judge(context.Background(), nil, verdict.Call{Tool: "bash", Arguments: args})
		if d != want || (d != verdict.Pass) != (len(reasons) == 1) || plan != nil {
			t.Errorf("%s: %v %v, want %v", args, d, reasons, want)
		}
	}
}

func ExampleLayer() {
	dir, err := os.MkdirTemp("", "layer")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	l, err := New(Options{Sealed: []string{"agent.yaml"}, Dir: dir})
	if err != nil {
		panic(err)
	}
	d, reasons, _ := l.Judge(context.Background(), nil, verdict.Call{
		Tool:      "bash",
		Arguments: `{"command": "sed -i 's/confirm/allow/' agent.yaml"}`,
	})
	fmt.Println(d, reasons)
	// Output: BLOCK [contained]
}

func FuzzShell(f *testing.F) {
	f.Add(`cd x && echo "$A" > agent.yaml <<EOF` + "\nEOF")
	f.Add(`find . -exec sh -c 'mv {} agent.yaml' \;`)
	f.Add(`tee {a,b}* <(x) >& 2 $((1+1)) ${a[1]/x/y} $'\x41'`)
	l, err := New(Options{Sealed: []string{"agent.yaml"}, Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, command string) {
		l.shell(command) // must not panic, whatever it is
	})
}
