package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

// Bounds of what is read of one call.
const (
	maxArguments = 1 << 20 // bytes; a longer call is not audited but refused
	maxLeaves    = 4096
	maxWords     = 8192
	maxDepth     = 64
)

// leaf is one value of the arguments, with the name of the argument it stands in.
type leaf struct {
	name  string
	value string
}

// parsedCall is a call, ready to be compared with rules.
type parsedCall struct {
	call    verdict.Call
	tool    *tool
	args    map[string]any
	leaves  []leaf
	numbers []float64
	classes []class
	verbs   []string
	words   map[string]bool // stems of all that stands in the call
	named   map[string]bool // of those, the ones in the values of its targets
	targets []boundTarget
	bad     string // why the call cannot be read; empty
}

// boundTarget is one argument that says what is acted on.
type boundTarget struct {
	name   string
	values []target
}

// shells run what stands in an argument.
var shells = set("bash sh shell exec run_command run_shell_command execute_command execute_bash terminal command execute_sql run_sql sql query_database psql")

// commandArguments hold commands.
var commandArguments = set("command cmd script sql query code statement")

// shellVerbs maps commands to verbs.
var shellVerbs = map[string]string{
	"rm": "delete", "rmdir": "delete", "unlink": "delete", "shred": "delete", "del": "delete", "mv": "move", "dd": "write", "tee": "write", "sed": "edit",
	"chmod": "modify", "chown": "modify", "touch": "write", "cp": "copy", "pg_dump": "backup", "mysqldump": "backup", "tar": "backup", "kill": "kill",
	"mail": "send", "sendmail": "send", "scp": "upload", "rsync": "sync", "truncate": "truncate", "insert": "insert", "alter": "alter", "drop": "drop",
	"shutdown": "shutdown", "reboot": "reboot", "curl": "", "wget": "", "cat": "read", "ls": "list", "grep": "search", "select": "read", "from": "",
}

func parseCall(c *Catalog, call verdict.Call) *parsedCall {
	p := &parsedCall{call: call, tool: c.find(call.Tool), words: map[string]bool{}, named: map[string]bool{}}
	p.classes, p.verbs = p.tool.classes, p.tool.Actions
	for _, w := range p.tool.words {
		p.words[w] = true
	}
	if len(call.Arguments) > maxArguments {
		p.bad = fmt.Sprintf("the arguments have %d bytes; at most %d are read", len(call.Arguments), maxArguments)
		return p
	}
	p.read()
	if p.bad != "" {
		return p
	}
	p.bind()
	p.readCommands()
	return p
}

// read takes the arguments apart.
func (p *parsedCall) read() {
	text := strings.TrimSpace(p.call.Arguments)
	if text == "" {
		return
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if text[0] != '{' {
		var v any
		if dec.Decode(&v) != nil {
			v = text // a tool that takes plain text
		}
		p.walk("", v, 0)
		return
	}
	if doubled, err := duplicateKey([]byte(text)); err != nil || doubled != "" {
		p.bad = "the arguments are no valid JSON object"
		if err == nil {
			p.bad = fmt.Sprintf("the argument %q stands in the call twice", clipText(doubled, 40))
		}
		return
	}
	if err := dec.Decode(&p.args); err != nil {
		p.bad = "the arguments are no valid JSON object"
		return
	}
	names := make([]string, 0, len(p.args))
	for n := range p.args {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		splitWords(n, func(w string) { p.words[stem(w)] = true })
		p.walk(n, p.args[n], 0)
	}
}

func (p *parsedCall) walk(name string, v any, depth int) {
	if len(p.leaves) >= maxLeaves || depth > maxDepth {
		p.bad = "the arguments hold more values than are read"
		return
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			splitWords(k, func(w string) { p.words[stem(w)] = true })
			p.walk(name+"."+k, v[k], depth+1)
		}
	case []any:
		for _, e := range v {
			p.walk(name, e, depth+1)
		}
	case string:
		p.leaf(name, v)
	case json.Number:
		if f, err := v.Float64(); err == nil {
			p.numbers = append(p.numbers, f)
		}
		p.leaf(name, v.String())
	case bool:
		p.leaf(name, fmt.Sprint(v))
	}
}

func (p *parsedCall) leaf(name, value string) {
	p.leaves = append(p.leaves, leaf{name, value})
	splitWords(value, func(w string) {
		if len(p.words) < maxWords {
			p.words[stem(w)] = true
		}
	})
}

// duplicateKey returns a key that stands in an object twice.
func duplicateKey(b []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	type frame struct {
		keys map[string]bool
		key  bool
	}
	var stack []frame
	for {
		t, err := dec.Token()
		if err != nil {
			if len(stack) == 0 {
				return "", nil
			}
			return "", err
		}
		if n := len(stack); n > 0 && stack[n-1].keys != nil && stack[n-1].key {
			if k, ok := t.(string); ok {
				if stack[n-1].keys[k] {
					return k, nil
				}
				stack[n-1].keys[k] = true
				stack[n-1].key = false
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			stack = append(stack, frame{map[string]bool{}, true})
		case json.Delim('['):
			stack = append(stack, frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 && t != json.Delim('{') {
			stack[n-1].key = stack[n-1].keys != nil
		}
		if len(stack) > maxDepth {
			return "", fmt.Errorf("nested deeper than %d", maxDepth)
		}
		if len(stack) == 0 && !dec.More() {
			return "", nil
		}
	}
}

// bind finds the arguments that say what is acted on.
func (p *parsedCall) bind() {
	names := p.tool.Targets
	if names == nil {
		for _, l := range p.leaves {
			top, _, _ := strings.Cut(l.name, ".")
			if !slices.Contains(names, top) {
				names = append(names, top)
			}
		}
		names = rankTargets(names, p.tool.Objects)
	}
	for _, n := range names {
		b := boundTarget{name: n}
		for _, l := range p.leaves {
			if l.name == n || strings.HasPrefix(l.name, n) && strings.HasPrefix(l.name[len(n):], ".") {
				for _, v := range splitList(l.value) {
					b.values = append(b.values, newTarget(v))
				}
				splitWords(l.value, func(w string) { p.named[stem(w)] = true })
			}
		}
		if len(b.values) > 0 {
			p.targets = append(p.targets, b)
		}
	}
}

// splitList takes apart what names several things in one text: addresses and ids
// separated by commas or semicolons.
func splitList(s string) []string {
	if len(s) > 4096 || !strings.ContainsAny(s, ",;") {
		return []string{s}
	}
	var out []string
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' }) {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return []string{s}
	}
	return out
}

// readCommands adds what the commands in the arguments of a shell do and name.
func (p *parsedCall) readCommands() {
	name := strings.ToLower(lastSegment(p.call.Tool))
	known := shells[name] || p.tool.Tool.Actions == nil
	if !known {
		return
	}
	for _, l := range p.leaves {
		if !shells[name] && !commandArguments[l.name] && l.name != "" {
			continue
		}
		b := boundTarget{name: l.name}
		first := true
		for _, f := range strings.FieldsFunc(clipText(l.value, 64<<10), func(r rune) bool { return strings.ContainsRune(" \t\n()'\"`", r) }) {
			bare := strings.Trim(f, ";|&,")
			verb, ok := shellVerbs[strings.ToLower(bare)]
			if !ok && isVerb(strings.ToLower(bare)) {
				verb = strings.ToLower(bare)
			}
			if verb != "" {
				p.verbs = append(slices.Clip(p.verbs), verb)
				p.classes = append(slices.Clip(p.classes), classOf(verb))
			} else if !first && bare != "" && !strings.HasPrefix(bare, "-") {
				b.values = append(b.values, newTarget(bare))
				splitWords(bare, func(w string) { p.named[stem(w)] = true })
			}
			first = strings.ContainsAny(f, ";|&")
		}
		if len(b.values) > 0 && shells[name] {
			p.targets = []boundTarget{b}
		}
	}
}

// clipText shortens s to at most n bytes.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
