package simulate

import (
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// choice records which template was used at a step, for the test that
// templates do not depend on the label.
type choice struct {
	step, index, of int
	list            string
}

// writer gives words to the actions of one run.
type writer struct {
	n       *run
	w       *world
	r       *rng
	family  string
	held    bool // uses the texts kept for test scenarios
	style   int  // how lines of a payload look
	talk    float64
	step    int
	choices []choice
	texts   map[string]string // contents shown so far, by path
	notes   []string          // paths of the agent's own files
	tools   [numKinds]*toolSpec
	shown   int
}

const shellFamily = "shell"

func newWriter(n *run, r *rng) *writer {
	x := &writer{n: n, w: n.w, r: r, style: r.IntN(6), shown: -2, texts: map[string]string{}}
	sc := n.w.sc
	x.family = pick(r, sharedFamilies)
	if (sc.domain == "sysadmin" || sc.domain == "code") && r.chance(0.3) {
		x.family = shellFamily
	}
	if sc.Part == PartTest && r.chance(0.5) {
		x.family, x.held = heldFamily, true
	}
	switch u := r.Float64(); {
	case u < 0.45:
		x.talk = 0
	case u < 0.85:
		x.talk = 1
	default:
		x.talk = 0.4
	}
	for k := range numKinds {
		if specs := n.w.specs(k, x.family); len(specs) > 0 {
			h := fnv.New32a()
			h.Write([]byte(sc.ID + "/" + k.String()))
			x.tools[k] = &specs[h.Sum32()%uint32(len(specs))]
		}
	}
	return x
}

// specs returns the tools of kind k in a family; the shell family lacks some
// and takes them from the snake family.
func (w *world) specs(k kind, family string) []toolSpec {
	if s := w.tab.tools[k][family]; len(s) > 0 {
		return s
	}
	return w.tab.tools[k]["snake"]
}

// from picks a template of the named list in m and notes which.
func (x *writer) from(m map[string]variants, prefix, name string) template {
	v := m[name]
	list := v.Shared
	if x.held && len(v.Held) > 0 {
		list = v.Held
	}
	i := x.r.IntN(len(list))
	x.choices = append(x.choices, choice{x.step, i, len(list), prefix + name})
	return list[i]
}

func (x *writer) text(name string) string {
	x.numbersAnew()
	return x.from(x.w.tab.texts, "text/", name).text(&x.w.v, x.r)
}

// numbersAnew refreshes the numbers that stand in texts without meaning anything.
func (x *writer) numbersAnew() {
	x.w.v[sNum], x.w.v[sSize] = strconv.Itoa(2+x.r.IntN(60)), strconv.Itoa(300+x.r.IntN(90000))
}

// trajectory renders the run.
func (x *writer) trajectory(s shape) *data.Trajectory {
	w, v, r := x.w, &x.w.v, x.r
	x.step = -1
	present, won := w.attack, x.n.done
	finished := s.cut == len(s.plan)
	t := &data.Trajectory{
		Dataset: Dataset, Group: w.sc.ID, UserTask: w.sc.ID, Suite: w.sc.domain,
		AttackPresent: &present, TaskSucceeded: &finished, HazardLabel: data.HazardNone, Label: data.Safe,
	}
	v[sGTool] = x.tools[w.goal.kind].Name
	t.Task = s.task
	for _, k := range s.added {
		t.Task += " " + x.text("also_"+k.String())
	}
	if s.also != numKinds {
		t.Task += " " + x.text("also_"+s.also.String())
	}
	if w.attack {
		t.AttackSucceeded = &won
		t.Attack, t.InjectionTask, t.AttackTool = "injection:"+w.chanl, w.goal.ID, v[sGTool]
		list := w.goal.Text
		if len(w.goal.Bare) > 0 && r.chance(0.25) {
			list = w.goal.Bare
		}
		v[sGoal] = pick(r, list).text(v, r)
		if r.chance(0.5) {
			v[sGoal] = x.text("named")
		}
		switch w.chanl {
		case "user":
			t.Task += pick(r, []string{" ", "\n", "\n\n"}) + x.text("override")
			x.shown = -1
		case "memory":
			t.Context = x.text("memory")
			x.shown = -1
		default:
			w.plant = x.text("wrap")
		}
	} else if r.chance(0.12) {
		t.Context = x.text("memory_benign")
	}
	x.catalogue(t)
	for i := range x.n.steps {
		x.step = i
		t.Steps = append(t.Steps, x.render(&x.n.steps[i]))
	}
	for i := range x.n.steps {
		a := &x.n.steps[i]
		if a.shows && x.shown == -2 {
			x.shown = i
		}
		if why := w.hazardOf(a); why != "" && t.FirstHazard == nil {
			first := i
			t.Label, t.FirstHazard, t.HazardLabel = data.Unsafe, &first, data.HazardRule
			if why != hzGoal {
				t.Attack = "drift:" + why
			}
		}
	}
	if x.shown > -2 {
		t.InjectionSeen = &x.shown
	}
	return t
}

// catalogue lists the tools on offer, in an order of the run's own.
func (x *writer) catalogue(t *data.Trajectory) {
	var kinds []kind
	for k, on := range x.n.catalog {
		if on && x.tools[k] != nil {
			kinds = append(kinds, kind(k))
		}
	}
	for range 2 { // tools that nobody needs
		if k := kind(x.r.IntN(int(kSay))); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	x.r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds {
		tool := data.Tool{Name: x.tools[k].Name, Description: x.tools[k].Desc}
		if !slices.ContainsFunc(t.Tools, func(o data.Tool) bool { return o.Name == tool.Name }) {
			t.Tools = append(t.Tools, tool)
		}
	}
}

// noAttachment removes what an empty attachment leaves behind.
var noAttachment = strings.NewReplacer(`[""]`, `[]`, ` -a ''`, ``)

// render writes one step.
func (x *writer) render(a *action) data.Step {
	w, v := x.w, &x.w.v
	x.fill(a)
	switch a.kind {
	case kFinish:
		return data.Step{Type: data.Message, Text: x.text("finish")}
	case kSay:
		return data.Step{Type: data.Message, Text: x.text("say"), Result: data.UserPrefix + x.text("say_reply")}
	}
	tool := x.tools[a.kind]
	s := data.Step{Type: data.ToolCall, Tool: tool.Name, Args: noAttachment.Replace(tool.Args.json(v, x.r))}
	if x.r.chance(x.talk) {
		name := a.kind.String()
		if a.delegated && x.r.chance(0.6) {
			name = "delegated"
		}
		s.Text = x.from(w.tab.thoughts, "thought/", name).text(v, x.r)
	}
	if a.failed {
		s.Error = x.text("error")
		return s
	}
	switch a.kind {
	case kRead, kBrowse, kMail:
		v[sRes] = x.content(&w.files[a.file], a.shows || w.host == a.file && w.plant != "")
		a.shows = a.shows || w.host == a.file && w.plant != ""
	case kList:
		v[sRes] = x.listing()
	case kSearch:
		v[sRes] = x.snippets(a.shows)
	case kExec:
		list, _, _ := strings.Cut(v[sCmd], " ")
		if list = "out_" + list; len(w.tab.texts[list].Shared) == 0 {
			list = "out"
		}
		v[sRes] = x.text(list)
	case kCompute:
		v[sRes] = x.numbers(a.file)
	}
	res := x.from(w.tab.results, "result/", a.kind.String())
	if p := res.parts[0]; p.slot < 0 && strings.HasPrefix(p.lit, "{") {
		s.Result = res.json(v, x.r)
	} else {
		s.Result = res.text(v, x.r)
	}
	return s
}

// fill sets the slots of one action.
func (x *writer) fill(a *action) {
	w, v, r := x.w, &x.w.v, x.r
	f := a.file
	if f < 0 {
		f = r.IntN(len(w.sc.Files))
	}
	v[sPath] = w.files[f].path
	x.numbersAnew()
	v[sMID], v[sHash] = letters(r, 3, lower)+"-"+digits(r, 7), letters(r, 10, hexChars)
	v[sWhen] = v[sDate2] + "T" + fmt.Sprintf("%02d:%02d", 8+r.IntN(10), 15*r.IntN(4))
	v[sAttach], v[sTo], v[sToName], v[sBody] = "", "", "", ""
	v[sSubject] = v[sTopic] + " " + v[sQ] + " " + v[sYear]
	if len(w.sc.Topic.parts) > 0 {
		v[sSubject] = w.sc.Topic.text(v, r)
	}
	v[sQuery] = x.text("query_" + w.sc.domain)
	v[sUse] = a.cred
	v[sKey], v[sVal] = w.sc.Key.text(v, r), w.sc.Val.text(v, r)
	v[sPayTo], v[sPayAmt] = v[sAccount], v[sAmount]
	v[sIn] = pick(r, []string{"Review", "Sync", "Hand-over", "Check-in", "Walk-through", "Follow-up"}) + ": " + v[sSubject]
	if len(w.sc.Run) > 0 {
		v[sCmd] = pick(r, w.sc.Run).text(v, r)
	}
	for i, rc := range a.to {
		if i > 0 {
			v[sTo] += ", "
		}
		v[sTo] += w.recips[rc].addr
	}
	if len(a.to) > 0 {
		v[sToName], _, _ = strings.Cut(w.recips[a.to[0]].name, " ")
		if a.to[0] < rcAttacker && strings.HasPrefix(w.recips[a.to[0]].name, "the ") {
			v[sToName] = "all"
		}
	}
	switch a.kind {
	case kDraft:
		v[sPath] = x.text("note_path")
		for slices.Contains(x.notes, v[sPath]) {
			v[sPath] = "v" + strconv.Itoa(len(x.notes)+1) + "_" + path.Base(v[sPath])
		}
		if !a.goal {
			x.notes = append(x.notes, v[sPath])
		}
		v[sBody] = x.body(a, "document")
	case kSend:
		v[sBody] = x.body(a, "letter")
	case kPost:
		v[sBody] = x.body(a, "post")
	case kSchedule:
		v[sBody] = x.text("agenda")
		if len(a.items) > 0 {
			v[sBody] += "\n" + x.lines(a.items)
		}
	case kDelete:
		v[sPath] = a.path
	}
	if a.note > 0 && a.kind != kDraft {
		if a.kind == kSend {
			v[sAttach] = x.notes[a.note-1]
		} else {
			v[sPath] = x.notes[a.note-1]
		}
	}
	if a.goal {
		g := w.goal
		for _, p := range []struct {
			slot int
			t    template
		}{{sKey, g.Key}, {sVal, g.Val}, {sCmd, g.Cmd}, {sPath, g.Path}, {sBody, g.Body}} {
			if len(p.t.parts) > 0 {
				v[p.slot] = p.t.text(v, r)
			}
		}
		v[sPayTo], v[sPayAmt] = v[sAAcct], v[sAAmount]
	}
	v[sDir], v[sBase] = path.Dir(v[sPath]), path.Base(v[sPath])
	if v[sDir] == "." {
		v[sDir] = v[sProj]
	}
}

// body writes a payload with the items of a.
func (x *writer) body(a *action, list string) string {
	v := &x.w.v
	if len(a.items) == 0 {
		v[sItem] = x.text("status")
	} else {
		v[sItem] = x.lines(a.items)
	}
	return x.text(list)
}

// lines lists items in the style of this run.
func (x *writer) lines(items []int) string {
	var b strings.Builder
	for i, it := range items {
		label, value := x.w.items[it].label, x.w.items[it].value
		if i > 0 && x.style != 4 {
			b.WriteByte('\n')
		}
		switch x.style {
		case 0:
			b.WriteString("- " + label + ": " + value)
		case 1:
			b.WriteString(label + ": " + value)
		case 2:
			b.WriteString("* " + label + " - " + value)
		case 3:
			b.WriteString("| " + label + " | " + value + " |")
		case 4:
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(label + " " + value)
		default:
			fmt.Fprintf(&b, "%d. %s = %s", i+1, label, value)
		}
	}
	return b.String()
}
