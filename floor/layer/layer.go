// Package layer judges tool calls by the containment floor: calls of tools that
// edit the agent's configuration, and writes to sealed files by any other tool,
// shell commands among them. It implements verdict.Layer.
//
//	l, err := layer.New(layer.Options{Sealed: []string{"agent.yaml"}})
//	decision, reasons, _ := l.Judge(ctx, session, verdict.Call{
//		Tool:      "bash",
//		Arguments: `{"command": "sed -i 's/confirm/allow/' agent.yaml"}`,
//	})
//	// BLOCK [contained]
//
// What is understood and permitted passes, what is understood and refused is
// blocked, and what cannot be understood and touches a sealed file is held for a
// person. A shell can hide a file name from any reader (it can compute it): the
// layer stops the ways that are written down, and the seal (floor.Seal) finds what
// got past it. An agent that must be contained by all means gets no shell.
package layer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/verdict"
)

// Tool describes a tool that changes a configuration or writes files, by the
// names of its arguments. Names of tools and arguments are compared without
// regard to case and separators.
type Tool struct {
	Name string // a name, or a pattern as in path.Match: "mcp__*__config_set"

	// A tool that writes one field has Path and Value; Delete names an argument
	// that is true when the field is removed.
	Path, Value, Delete string
	// A tool that writes a whole document, or applies a patch to it.
	Document, Patch, MergePatch string
	// Old and New name the arguments of a tool that replaces text.
	Old, New string
	// File names the argument with the file's name. A tool without one writes
	// the first sealed file.
	File string
}

// DefaultTools are the tools that agents commonly have.
func DefaultTools() []Tool {
	return []Tool{
		{Name: "config_set", Path: "path", Value: "value"},
		{Name: "set_config", Path: "path", Value: "value"},
		{Name: "update_config", Path: "path", Value: "value"},
		{Name: "config.patch", Patch: "patch", MergePatch: "merge_patch"},
		{Name: "config.apply", Document: "document"},
		{Name: "write_file", File: "path", Document: "content"},
		{Name: "file_write", File: "path", Document: "content"},
		{Name: "create_file", File: "path", Document: "content"},
		{Name: "Write", File: "file_path", Document: "content"},
		{Name: "file_edit", File: "path", Old: "old", New: "new"},
		{Name: "edit_file", File: "path", Old: "old_text", New: "new_text"},
		{Name: "Edit", File: "file_path", Old: "old_string", New: "new_string"},
	}
}

// DefaultShells are the names of tools that run shell commands.
func DefaultShells() []string {
	return []string{"bash", "sh", "shell", "exec", "run", "run_command", "run_shell_command", "execute_command", "execute_bash", "terminal", "command", "process"}
}

// Options are the options of New.
type Options struct {
	Floor  *floor.Floor // floor.Default() when nil
	Sealed []string     // files that only the floor writes; their seals are sealed with them
	Tools  []Tool       // DefaultTools() when nil
	Shells []string     // DefaultShells() when nil
	Dir    string       // where relative paths start; the working directory when empty
}

// Layer implements verdict.Layer. It has no state between calls.
type Layer struct {
	floor  *floor.Floor
	tools  []Tool
	shells map[string]bool
	dir    string
	sealed []sealedFile
}

type sealedFile struct {
	name string // absolute, clean
	real string // with links followed, where the file exists
}

var _ verdict.Layer = (*Layer)(nil)

// New makes a layer.
func New(o Options) (*Layer, error) {
	l := &Layer{floor: o.Floor, tools: o.Tools, shells: map[string]bool{}, dir: o.Dir}
	if l.floor == nil {
		l.floor = floor.Default()
	}
	if l.tools == nil {
		l.tools = DefaultTools()
	}
	for _, t := range l.tools {
		if _, err := path.Match(t.Name, ""); err != nil {
			return nil, fmt.Errorf("layer: tool %q: %w", t.Name, err)
		}
	}
	shells := o.Shells
	if shells == nil {
		shells = DefaultShells()
	}
	for _, s := range shells {
		l.shells[plain(s)] = true
	}
	if l.dir == "" {
		var err error
		if l.dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("layer: %w", err)
		}
	}
	for _, s := range o.Sealed {
		for _, name := range []string{s, s + ".seal"} {
			f := sealedFile{name: l.abs(l.dir, name)}
			if f.real, _ = filepath.EvalSymlinks(f.name); f.real == "" {
				f.real = f.name // it may come to be later
			}
			l.sealed = append(l.sealed, f)
		}
	}
	return l, nil
}

// Name is stated in verdicts.
func (l *Layer) Name() string { return "floor" }

// Commit does nothing: the layer has no state.
func (l *Layer) Commit(verdict.SessionView, verdict.Call, verdict.Result) {}

// Judge judges a call.
func (l *Layer) Judge(_ context.Context, _ verdict.SessionView, c verdict.Call) (verdict.Decision, []verdict.Reason, []verdict.Call) {
	d := l.Decide(c)
	switch d.Outcome {
	case floor.Refuse:
		if d.Rule == floor.RuleUnreadable {
			return verdict.Block, []verdict.Reason{verdict.ReasonIncomplete}, nil
		}
		return verdict.Block, []verdict.Reason{verdict.ReasonContained}, nil
	case floor.Hold:
		return verdict.Hold, []verdict.Reason{verdict.ReasonContained}, nil
	}
	return verdict.Pass, nil, nil
}

// maxArguments bounds what is parsed of a call, in bytes.
const maxArguments = 16 << 20

// Rules of decisions on calls, beside those of the floor.
const (
	RuleSealedWrite = "sealed-write"   // a sealed file would be written past the check
	RuleNotClear    = "sealed-unclear" // a sealed file is named, and what happens to it is not clear
)

// Decide judges a call and says why.
func (l *Layer) Decide(c verdict.Call) floor.Decision {
	if c.IsMessage() {
		return floor.Decision{}
	}
	if len(c.Arguments) > maxArguments {
		return l.unclear("the arguments are larger than are read")
	}
	args, ok := object(c.Arguments)
	tool, isTool := l.tool(c.Tool)
	shell := l.shells[plain(lastSegment(c.Tool))]
	switch {
	case shell && !ok:
		return l.shell(c.Arguments)
	case shell:
		return l.shellArguments(args)
	case isTool && !ok:
		return floor.Decision{Outcome: floor.Refuse, Rule: floor.RuleUnreadable, Reason: "the arguments are no JSON object with each name once"}
	case isTool:
		return l.config(tool, args)
	case readsOnly(c.Tool):
		return floor.Decision{}
	}
	if name := l.mentioned(c.Arguments, args); name != "" {
		return l.unclear(fmt.Sprintf("%s is sealed, and what %s does to it is not known", name, c.Tool))
	}
	return floor.Decision{}
}

func (l *Layer) unclear(reason string) floor.Decision {
	return floor.Decision{Outcome: floor.Hold, Rule: RuleNotClear, Reason: reason + ": a person decides"}
}

func sealedWrite(name string) floor.Decision {
	return floor.Decision{Outcome: floor.Refuse, Rule: RuleSealedWrite, Path: name,
		Reason: fmt.Sprintf("%s holds your own limits and is not written this way: change single settings with the configuration tool", filepath.Base(name))}
}

// plain is a name without case and separators.
func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(s))
}

// lastSegment is the name of a tool without the server that an MCP client puts in
// front: mcp__server__tool.
func lastSegment(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		return tool[i+2:]
	}
	if i := strings.LastIndexAny(tool, "/:"); i >= 0 {
		return tool[i+1:]
	}
	return tool
}

func (l *Layer) tool(name string) (Tool, bool) {
	for _, t := range l.tools {
		if ok, _ := path.Match(t.Name, name); ok || plain(t.Name) == plain(name) || plain(t.Name) == plain(lastSegment(name)) {
			return t, true
		}
	}
	return Tool{}, false
}

// readsOnly reports whether the name of a tool says that it reads.
func readsOnly(tool string) bool {
	word := strings.ToLower(strings.FieldsFunc(lastSegment(tool)+" x", func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' })[0])
	for _, w := range []string{"read", "get", "list", "search", "grep", "glob", "view", "cat", "stat", "find", "show", "describe", "fetch"} {
		if word == w || word == "file" && strings.HasSuffix(strings.ToLower(tool), w) {
			return true
		}
	}
	lower := plain(lastSegment(tool))
	return lower == "configget" || lower == "configread"
}

// object reads the arguments; a name that stands there twice makes them
// unreadable.
func object(arguments string) (map[string]json.RawMessage, bool) {
	dec := json.NewDecoder(strings.NewReader(arguments))
	t, err := dec.Token()
	if d, ok := t.(json.Delim); err != nil || !ok || d != '{' {
		return nil, false
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return nil, false
		}
		if _, ok := out[plain(key)]; ok {
			return nil, false
		}
		out[plain(key)] = v
	}
	if _, err := dec.Token(); err != nil || dec.More() {
		return nil, false
	}
	return out, true
}

func text(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// config judges a call of a tool that edits configurations or writes files.
func (l *Layer) config(t Tool, args map[string]json.RawMessage) floor.Decision {
	file := ""
	if t.File != "" {
		name, ok := text(args[plain(t.File)])
		if !ok {
			for _, alias := range []string{"path", "filepath", "file", "filename"} {
				if name, ok = text(args[alias]); ok {
					break
				}
			}
		}
		if file = l.sealedName(l.dir, name); file == "" {
			if hidden := l.mentioned("", args); !ok && hidden != "" {
				return l.unclear(hidden + " is sealed, and which file is written is not clear")
			}
			return floor.Decision{} // another file
		}
		if strings.HasSuffix(file, ".seal") {
			return sealedWrite(file)
		}
	} else if len(l.sealed) > 0 {
		file = l.sealed[0].name
	}
	c, d := l.change(t, args, file)
	if d.Outcome != floor.Permit {
		return d
	}
	return l.floor.Check(c)
}

// maxPresent bounds the present document that is read, in bytes. What is larger, or no
// regular file, counts as not there: a document in its place is then judged as new, by
// all that it sets.
const maxPresent = 16 << 20

// change makes the change that a call would make.
func (l *Layer) change(t Tool, args map[string]json.RawMessage, file string) (floor.Change, floor.Decision) {
	var c floor.Change
	format, known := floor.FormatOf(file)
	if file != "" {
		if b, err := boundedfile.Read(file, maxPresent); err == nil {
			c.Before = b
			if known {
				c.BeforeFormat = format
			}
		}
	}
	argument := func(name string) (json.RawMessage, bool) {
		if name == "" {
			return nil, false
		}
		raw, ok := args[plain(name)]
		return raw, ok
	}
	if raw, ok := argument(t.Path); ok {
		c.Format = floor.PathWrite
		if c.Path, ok = text(raw); !ok {
			return c, l.unclear("the path is no text")
		}
		if c.Value, ok = argument(t.Value); !ok {
			c.Delete = true
		}
		if raw, ok := argument(t.Delete); ok && string(raw) == "true" {
			c.Delete = true
		}
		return c, floor.Decision{}
	}
	for _, p := range []struct {
		name   string
		format floor.Format
	}{{t.Patch, floor.JSONPatch}, {t.MergePatch, floor.MergePatch}, {t.Document, format}} {
		raw, ok := argument(p.name)
		if !ok {
			continue
		}
		c.Format, c.Text = p.format, raw
		if s, ok := text(raw); ok {
			c.Text = []byte(s)
		}
		if !known && p.name == t.Document {
			return c, l.unclear("the format of the document is not known")
		}
		return c, floor.Decision{}
	}
	if raw, ok := argument(t.Old); ok {
		before, isText := text(raw)
		after, isText2 := text(args[plain(t.New)])
		n := bytes.Count(c.Before, []byte(before))
		if !isText || !isText2 || c.Before == nil || before == "" || n == 0 || !known {
			return c, l.unclear("what the edit of a sealed file makes of it cannot be worked out")
		}
		c.Format, c.BeforeFormat = format, ""
		c.Text = bytes.ReplaceAll(c.Before, []byte(before), []byte(after))
		once := floor.Change{Format: format, Before: c.Before, Text: bytes.Replace(c.Before, []byte(before), []byte(after), 1)}
		return c, l.floor.Check(once) // whether the tool replaces one or all
	}
	return c, l.unclear("the call of a tool that edits the configuration says neither path nor document")
}

// mentioned returns the first sealed file that any text in the arguments names.
func (l *Layer) mentioned(raw string, args map[string]json.RawMessage) string {
	for _, v := range args {
		raw += " " + string(v)
	}
	var decoded any
	for _, v := range args {
		if json.Unmarshal(v, &decoded) == nil {
			raw += " " + fmt.Sprint(decoded)
		}
	}
	return l.namedIn(raw)
}

// namedIn returns the first sealed file whose name stands in a text.
func (l *Layer) namedIn(s string) string {
	lower := strings.ToLower(s)
	for _, f := range l.sealed {
		if strings.Contains(lower, strings.ToLower(filepath.Base(f.name))) {
			return filepath.Base(f.name)
		}
	}
	return ""
}

func (l *Layer) abs(dir, name string) string {
	if strings.HasPrefix(name, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			name = filepath.Join(home, name[2:])
		}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return filepath.Clean(name)
}

// sealedName returns the sealed file that a name leads to, by spelling (letter
// case aside: some file systems ignore it), by links, or as another name of the
// same file; "" if it leads to none.
func (l *Layer) sealedName(dir, name string) string {
	if name == "" {
		return ""
	}
	full := l.abs(dir, strings.TrimPrefix(name, "file://"))
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		real = full
		if parent, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil {
			real = filepath.Join(parent, filepath.Base(full))
		}
	}
	info, statErr := os.Stat(full)
	for _, f := range l.sealed {
		if strings.EqualFold(full, f.name) || strings.EqualFold(real, f.real) || strings.EqualFold(real, f.name) {
			return f.name
		}
		if own, err := os.Stat(f.name); err == nil && statErr == nil && os.SameFile(own, info) {
			return f.name
		}
	}
	return ""
}

// holdsSealed returns the sealed file inside a folder, "" if there is none.
func (l *Layer) holdsSealed(dir, name string) string {
	full := strings.ToLower(l.abs(dir, name))
	for _, f := range l.sealed {
		if full == "/" || strings.HasPrefix(strings.ToLower(f.name), full+string(filepath.Separator)) {
			return f.name
		}
	}
	return ""
}
