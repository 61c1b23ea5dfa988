package simulate

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed tables/*.yaml
var tableFS embed.FS

// kind is what an action does.
type kind uint8

const (
	kRead kind = iota
	kBrowse
	kMail
	kList
	kSearch
	kCompute
	kDraft
	kSend
	kPost
	kDelete
	kCred
	kPay
	kShare
	kSchedule
	kExec
	kConfig
	kSay
	kFinish
	numKinds
)

var kindNames = [numKinds]string{"read", "browse", "mail", "list", "search", "compute", "draft", "send", "post", "delete",
	"cred", "pay", "share", "schedule", "exec", "config", "say", "finish"}

func (k kind) String() string { return kindNames[k] }

func parseKind(s string) (kind, error) {
	if i := slices.Index(kindNames[:], s); i >= 0 {
		return kind(i), nil
	}
	return 0, fmt.Errorf("unknown action kind %q: want one of %s", s, strings.Join(kindNames[:], ", "))
}

// scenario is one row of the scenario tables.
type scenario struct {
	ID    string     `yaml:"id"`
	Title string     `yaml:"title"`
	Part  string     `yaml:"part"`  // train, validation, conformal, test
	Tasks []template `yaml:"tasks"` // phrasings of the user's instruction
	Plan  []string   `yaml:"plan"`  // what the task needs, in order; a trailing ? makes it optional

	R1 string `yaml:"r1"` // recipients: colleague, partner, sender or list:NAME
	R2 string `yaml:"r2"`
	R3 string `yaml:"r3"`
	// SecretsTo names the recipients who may receive the marked items.
	SecretsTo []string `yaml:"secrets_to"`

	Files   []fileRow  `yaml:"files"`
	Chan    template   `yaml:"chan"`    // where posts of this task go
	Scratch template   `yaml:"scratch"` // what the task lets the agent delete
	Outside []template `yaml:"outside"` // what it must not delete
	Cred    string     `yaml:"cred"`    // the credential the task needs; empty: none
	Others  []string   `yaml:"others"`  // credentials within reach that it does not need
	Run     []template `yaml:"run"`     // commands of the task
	Key     template   `yaml:"key"`     // setting that the task changes
	Val     template   `yaml:"val"`
	Lines   []template `yaml:"lines"` // instructions in the document the task delegates to
	Topic   template   `yaml:"topic"` // subject of messages

	domain string
	plan   []planStep
}

type fileRow struct {
	Path    template   `yaml:"path"`
	Kind    string     `yaml:"kind"` // table, mail, log, code, config, note, page, ticket, checklist
	Title   template   `yaml:"title"`
	Level   string     `yaml:"level"` // public, internal, confidential, restricted
	From    string     `yaml:"from"`  // r1, r2 or r3: the recipient whose address stands in its header
	Facts   []itemRow  `yaml:"facts"`
	Secrets []itemRow  `yaml:"secrets"`
	Aggs    []itemRow  `yaml:"aggs"` // what a computation over the file yields: carries no taint of the rows
	Text    []template `yaml:"text"` // sentences of its own
}

// itemRow is "label=kind".
type itemRow struct {
	label template
	kind  string
}

// UnmarshalYAML reads "label=kind".
func (it *itemRow) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	label, k, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("item %q: want label=kind", s)
	}
	if _, ok := valueKinds[k]; !ok && k != "account" && k != "due" {
		return fmt.Errorf("item %q: unknown kind of value %q", s, k)
	}
	var err error
	it.kind = k
	it.label, err = compile(label)
	return err
}

// planStep is one compiled entry of a plan.
type planStep struct {
	kind     kind
	file     int // index into Files, -1 none
	to       int // 0, 1, 2 for r1, r2, r3; -1 none
	optional bool
}

type toolSpec struct {
	Family string   `yaml:"f"`
	Name   string   `yaml:"n"`
	Desc   string   `yaml:"d"`
	Args   template `yaml:"a"`
}

// variants are texts of one purpose; held is used by the held-out family only.
type variants struct {
	Shared []template `yaml:"shared"`
	Held   []template `yaml:"held"`
}

type goalRow struct {
	ID   string     `yaml:"id"`
	Kind string     `yaml:"kind"`
	Text []template `yaml:"text"` // with the arguments
	Bare []template `yaml:"bare"` // without
	Read bool       `yaml:"read"` // needs the target file's content first
	Key  template   `yaml:"key"`  // what goes into the arguments, where the kind of action does not say
	Val  template   `yaml:"val"`
	Cmd  template   `yaml:"cmd"`
	Path template   `yaml:"path"`
	Body template   `yaml:"body"`

	kind kind
}

// tables is everything the generator draws on.
type tables struct {
	domains   []string
	scenarios map[string][]*scenario // by domain
	all       []*scenario
	tools     [numKinds]map[string][]toolSpec // by family
	thoughts  map[string]variants             // by kind, and "delegated"
	results   map[string]variants
	texts     map[string]variants // bodies, wrappers, tails, notes, fillers
	goals     []goalRow
	common    map[string][]fileRow // pages and mails of a domain, beside the scenario's own
}

const heldFamily = "kebab"

var sharedFamilies = []string{"snake", "dotted", "camel"}

// rates are the shares of unsafe runs in a domain when half of all runs are
// unsafe: low in the technical domains, high where the work is to send things.
var rates = []struct {
	domain string
	rate   float64
}{{"data", 0.52}, {"sysadmin", 0.34}, {"communication", 0.72}, {"code", 0.42}}

var loadTables = sync.OnceValue(func() *tables {
	t, err := parseTables()
	if err != nil {
		panic("simulate: embedded table: " + err.Error()) // a defect of the build, found by any test
	}
	return t
})

func parseTables() (*tables, error) {
	t := &tables{scenarios: map[string][]*scenario{}, common: map[string][]fileRow{}}
	read := func(name string, v any) error {
		b, err := tableFS.ReadFile("tables/" + name)
		if err != nil {
			return err
		}
		if err := yaml.UnmarshalWithOptions(b, v, yaml.Strict()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	for _, d := range rates {
		t.domains = append(t.domains, d.domain)
		var list []*scenario
		if err := read("scenarios_"+d.domain+".yaml", &list); err != nil {
			return nil, err
		}
		for _, sc := range list {
			sc.domain = d.domain
			if err := sc.check(); err != nil {
				return nil, fmt.Errorf("scenarios_%s.yaml: %s: %w", d.domain, sc.ID, err)
			}
		}
		t.scenarios[d.domain] = list
		t.all = append(t.all, list...)
	}
	tools := map[string][]toolSpec{}
	for _, name := range []string{"tools_read.yaml", "tools_act.yaml"} {
		m := map[string][]toolSpec{}
		if err := read(name, &m); err != nil {
			return nil, err
		}
		for k, v := range m {
			tools[k] = v
		}
	}
	for name, specs := range tools {
		k, err := parseKind(name)
		if err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		t.tools[k] = map[string][]toolSpec{}
		for _, s := range specs {
			t.tools[k][s.Family] = append(t.tools[k][s.Family], s)
		}
	}
	for name, v := range map[string]any{"thoughts.yaml": &t.thoughts, "results.yaml": &t.results, "texts.yaml": &t.texts,
		"goals.yaml": &t.goals, "common.yaml": &t.common} {
		if err := read(name, v); err != nil {
			return nil, err
		}
	}
	for i := range t.goals {
		var err error
		if t.goals[i].kind, err = parseKind(t.goals[i].Kind); err != nil {
			return nil, fmt.Errorf("goals.yaml: %s: %w", t.goals[i].ID, err)
		}
	}
	return t, nil
}

func (sc *scenario) recipients() []string {
	list := []string{sc.R1, sc.R2, sc.R3}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// check compiles the plan and refuses rows that the policy could not run.
func (sc *scenario) check() error {
	if len(sc.Tasks) < 3 || len(sc.Files) < 3 || len(sc.Outside) < 2 || len(sc.Others) < 2 {
		return fmt.Errorf("want at least 3 phrasings, 3 files, 2 outside paths and 2 other credentials")
	}
	if !slices.Contains(Parts, sc.Part) {
		return fmt.Errorf("part %q: want one of %v", sc.Part, Parts)
	}
	recips := sc.recipients()
	if len(recips) == 0 {
		return fmt.Errorf("no recipient r1")
	}
	secret := false
	for _, f := range sc.Files {
		if !slices.Contains(fileKinds, f.Kind) {
			return fmt.Errorf("file kind %q: want one of %v", f.Kind, fileKinds)
		}
		secret = secret || len(f.Secrets) > 0
	}
	if !secret {
		return fmt.Errorf("no file holds a secret")
	}
	for _, entry := range sc.Plan {
		p := planStep{file: -1, to: -1}
		entry, p.optional = strings.CutSuffix(entry, "?")
		for i, word := range strings.Fields(entry) {
			switch {
			case len(word) == 2 && word[0] == 'f' && word[1] > '0' && word[1] <= '9':
				if p.file = int(word[1] - '1'); p.file >= len(sc.Files) {
					return fmt.Errorf("plan %q: no such file", entry)
				}
				if i == 0 {
					p.kind = readKind(sc.Files[p.file].Kind)
				}
			case len(word) == 2 && word[0] == 'r' && word[1] > '0' && word[1] <= '3':
				if p.to = int(word[1] - '1'); p.to >= len(recips) {
					return fmt.Errorf("plan %q: no such recipient", entry)
				}
			case i == 0:
				k, err := parseKind(word)
				if err != nil {
					return fmt.Errorf("plan: %w", err)
				}
				p.kind = k
			default:
				return fmt.Errorf("plan %q: %q is not understood", entry, word)
			}
		}
		if (p.kind == kSend || p.kind == kShare || p.kind == kSchedule) && p.to < 0 {
			return fmt.Errorf("plan %q: names no recipient", entry)
		}
		if p.kind == kExec && len(sc.Run) == 0 || p.kind == kConfig && len(sc.Key.parts) == 0 ||
			p.kind == kPost && len(sc.Chan.parts) == 0 || p.kind == kDelete && len(sc.Scratch.parts) == 0 ||
			p.kind == kCred && sc.Cred == "" {
			return fmt.Errorf("plan %q: the scenario does not say what to use (run, key, chan, scratch, cred)", entry)
		}
		sc.plan = append(sc.plan, p)
	}
	return nil
}

var fileKinds = []string{"table", "mail", "log", "code", "config", "note", "page", "ticket", "checklist"}

func readKind(fileKind string) kind {
	switch fileKind {
	case "page":
		return kBrowse
	case "mail":
		return kMail
	}
	return kRead
}
