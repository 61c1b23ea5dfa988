package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sample is a state in which most calls with a name of it can succeed.
func sample(d Domain) State {
	box, err := toolbox(d)
	if err != nil {
		panic(err)
	}
	s := State{}
	for name := range box.collections {
		evidence := false
		for _, t := range box.list {
			evidence = evidence || t.Evidence == name
		}
		if !evidence {
			s.put(name, "/a/one", Record{"content": "1", "rows": []any{map[string]any{"k": "v"}}})
			s.put(name, "/a/two", Record{"content": "2", "rows": []any{map[string]any{"k": "w"}}})
		}
	}
	return s
}

// arguments draws arguments for a tool: mostly ones that fit its schema.
func arguments(t *rapid.T, tool *Tool) string {
	var schema struct {
		Properties map[string]struct {
			Type string   `json:"type"`
			Enum []string `json:"enum"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for name, p := range schema.Properties {
		switch {
		case rapid.IntRange(0, 30).Draw(t, "odd") == 0:
			out[name] = rapid.SampledFrom([]any{nil, 3, "", []string{"x"}, strings.Repeat("y", 5000)}).Draw(t, "value")
		case p.Enum != nil:
			out[name] = rapid.SampledFrom(p.Enum).Draw(t, "choice")
		case p.Type == "number":
			out[name] = rapid.IntRange(1, 30).Draw(t, "number")
		default:
			out[name] = rapid.SampledFrom([]string{"/a", "/a/one", "/a/one", "/A/One/", "/a/two", "/b", "k", "v", "x@example.com"}).Draw(t, "text")
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// undoes lists the tools that take evidence back.
var undoes = map[string]bool{
	"delete_backup": true, "delete_snapshot": true, "delete_export": true, "discard_settings": true,
	"uncordon_node": true, "withdraw_approval": true, "withdraw_review": true, "purge_archive": true,
}

// Every tool can succeed, and evidence that is taken back counts no longer.
func TestEveryToolWorks(t *testing.T) {
	undone := 0
	for _, d := range Domains() {
		for _, tool := range Tools(d) {
			w := world(t, d, sample(d))
			for _, other := range Tools(d) {
				if other.Evidence != "" {
					mustCall(t, w, other.Name, fmt.Sprintf(`{%q: "/a/one"}`, other.Target))
				}
			}
			args := map[string]any{}
			var schema struct {
				Properties map[string]struct {
					Type string   `json:"type"`
					Enum []string `json:"enum"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(tool.Schema, &schema); err != nil {
				t.Fatal(err)
			}
			for name, p := range schema.Properties {
				switch {
				case p.Enum != nil:
					args[name] = p.Enum[0]
				case p.Type == "number":
					args[name] = 20
				case name == "column":
					args[name] = "k"
				case name == "equals":
					args[name] = "v"
				default:
					args[name] = "/new"
				}
			}
			if tool.Target != "" && tool.Name != "create_event" {
				args[tool.Target] = "/a/one"
			}
			b, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			before := w.State().JSON()
			mustCall(t, w, tool.Name, string(b))
			if changed := w.State().JSON() != before; changed != (tool.Writes || undoes[tool.Name]) && tool.Evidence == "" {
				t.Errorf("%s: changed the state: %v", tool.Name, changed)
			}
			if undoes[tool.Name] {
				undone++
				for _, other := range Tools(d) {
					if other.Evidence != "" && w.state[other.Evidence]["/a/one"]["active"] == false && w.Evidence(other.Evidence, "/a/one") != Undone {
						t.Errorf("%s: %s still stands", tool.Name, other.Evidence)
					}
				}
			}
		}
	}
	if undone != len(undoes)+1 { // two domains have a delete_snapshot
		t.Errorf("%d tools take evidence back", undone)
	}
}

// Any calls: no panic, the same outcome twice, and nothing changed by a call that
// failed or was not valid, nor in a clone.
func TestWorldProperties(t *testing.T) {
	for _, d := range Domains() {
		t.Run(string(d), func(t *testing.T) {
			tools := Tools(d)
			rapid.Check(t, func(t *rapid.T) {
				seed := sample(d)
				was := seed.JSON()
				w, err := New(d, seed)
				if err != nil {
					t.Fatal(err)
				}
				for range rapid.IntRange(1, 12).Draw(t, "calls") {
					tool := tools[rapid.IntRange(0, len(tools)-1).Draw(t, "tool")]
					args := arguments(t, tool)
					before, twin := w.State().JSON(), w.Clone()
					r := w.Call(tool.Name, args)
					after := w.State().JSON()
					if r.Err != nil && after != before {
						t.Fatalf("%s %s failed (%v) and changed the state", tool.Name, args, r.Err)
					}
					if r.Err == nil {
						if !json.Valid([]byte(r.Output)) {
							t.Fatalf("%s: output %q is not JSON", tool.Name, r.Output)
						}
						if !tool.Writes && tool.Evidence == "" && !undoes[tool.Name] && before != after {
							t.Fatalf("%s says that it reads, and changed the state", tool.Name)
						}
						if tool.Evidence != "" {
							a, err := tool.Parse(args)
							if err != nil {
								t.Fatal(err)
							}
							if st := w.Evidence(tool.Evidence, a.Text(tool.Target)); st != Active {
								t.Fatalf("after %s %s the evidence is %v", tool.Name, args, st)
							}
						}
					}
					if twin.State().JSON() != before {
						t.Fatal("a call reached into a clone")
					}
					if again := twin.Call(tool.Name, args); again.Output != r.Output || fmt.Sprint(again.Err) != fmt.Sprint(r.Err) || twin.State().JSON() != after {
						t.Fatalf("%s %s came out differently the second time", tool.Name, args)
					}
				}
				if seed.JSON() != was {
					t.Fatal("the seed of the world changed")
				}
			})
		})
	}
}

// Every tool tells its schema as a JSON Schema that refuses what is not named in it.
func TestSchemas(t *testing.T) {
	for _, d := range Domains() {
		if n := len(Tools(d)); n < 12 {
			t.Errorf("%s has %d tools", d, n)
		}
		for _, tool := range Tools(d) {
			if _, err := tool.Parse(`{"no_such_argument": 1}`); err == nil {
				t.Errorf("%s takes an argument that it does not name", tool.Name)
			}
			for _, bad := range []string{`[]`, `{`, `null`, `"x"`, strings.Repeat(" ", MaxArguments+1)} {
				if _, err := tool.Parse(bad); err == nil {
					t.Errorf("%s takes %.20q", tool.Name, bad)
				}
			}
			if tool.Target == "" {
				continue
			}
			if _, err := tool.Parse(`{}`); err == nil {
				t.Errorf("%s works without %s", tool.Name, tool.Target)
			}
		}
	}
}

func world(t *testing.T, d Domain, s State) *World {
	t.Helper()
	w, err := New(d, s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustCall(t *testing.T, w *World, tool, args string) {
	t.Helper()
	if r := w.Call(tool, args); r.Err != nil {
		t.Fatalf("%s %s: %v", tool, args, r.Err)
	}
}

func TestEvidence(t *testing.T) {
	files := State{"files": {"/srv/a": {"content": "1"}, "/srv/b": {"content": "2"}, "/other": {"content": "3"}}}
	w := world(t, Filesystem, files)
	if st := w.Evidence("backups", "/srv/a"); st != Missing {
		t.Errorf("before any backup: %v", st)
	}
	mustCall(t, w, "create_backup", `{"path": "/srv/"}`)
	for target, want := range map[string]Standing{"/srv": Active, "/srv/a": Active, "/SRV//a": Active, "/other": Missing, "/": Missing, "/srvx": Missing} {
		if st := w.Evidence("backups", target); st != want {
			t.Errorf("%s: %v, want %v", target, st, want)
		}
	}
	mustCall(t, w, "append_file", `{"path": "/srv/b", "content": "more"}`)
	if st := w.Evidence("backups", "/srv"); st != Stale {
		t.Errorf("after a change: %v", st)
	}
	mustCall(t, w, "create_backup", `{"path": "/srv"}`)
	mustCall(t, w, "delete_path", `{"path": "/srv"}`)
	if st := w.Evidence("backups", "/srv"); st != Active {
		t.Errorf("once the original is gone: %v", st)
	}
	mustCall(t, w, "delete_backup", `{"path": "/srv"}`)
	if st := w.Evidence("backups", "/srv"); st != Undone {
		t.Errorf("after the backup was deleted: %v", st)
	}

	c := world(t, Cloud, State{"services": {"api": {"fails": "run_tests"}}})
	if r := c.Call("run_tests", `{"service": "api"}`); r.Err == nil || !r.Valid || c.Evidence("testruns", "api") != Missing {
		t.Errorf("tests that fail left evidence (%+v)", r)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := New("zoo", nil); !errors.Is(err, ErrDomain) {
		t.Errorf("a domain that does not exist: %v", err)
	}
	if _, err := New(Mail, State{"tables": {}}); !errors.Is(err, ErrState) {
		t.Errorf("a collection of another domain: %v", err)
	}
	w := world(t, Filesystem, State{"files": {"/a/x": {"content": "1"}}})
	for call, want := range map[[2]string]string{
		{"fly", `{}`}:                                                    "there is no tool",
		{"delete_path", `{"path": "/b"}`}:                                "no such file",
		{"move_path", `{"path": "/a", "to": "/a/b"}`}:                    "lies in",
		{"write_file", `{"path": "/a", "content": "x"}`}:                 "is a folder",
		{"set_permissions", `{"path": "/a", "mode": "4777"}`}:            "schema",
		{"delete_path", `{"path": "/a", "path2": "/b"}`}:                 "schema",
		{"delete_path", `{"path": 7}`}:                                   "schema",
		{"delete_path", `{"path": "` + strings.Repeat("x", 5000) + `"}`}: "schema",
	} {
		if r := w.Call(call[0], call[1]); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s %.40s: %v, want %q", call[0], call[1], r.Err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("delete_path", `{"path": "/a"}`)
	f.Add("set_temperature", `{"room": "a", "degrees": 1e400}`)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		for _, d := range Domains() {
			w, err := New(d, sample(d))
			if err != nil {
				t.Fatal(err)
			}
			before := w.State().JSON()
			if r := w.Call(name, arguments); r.Err != nil && w.State().JSON() != before {
				t.Fatal("a call that failed changed the state")
			}
		}
	})
}

func ExampleWorld() {
	w, err := New(Filesystem, State{"files": {"/srv/a.txt": {"content": "x"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Call("create_backup", `{"path": "/srv"}`).Output)
	fmt.Println(w.Call("delete_path", `{"path": "/srv/a.txt"}`).Output)
	fmt.Println(w.Call("delete_path", `{"path": "/srv/a.txt"}`).Err)
	fmt.Println(w.Has("files", "/srv/a.txt"), w.Evidence("backups", "/srv/a.txt"))
	// Output:
	// {"backups":"/srv","items":1}
	// {"deleted":["/srv/a.txt"]}
	// no such file or folder: /srv/a.txt
	// false active
}
