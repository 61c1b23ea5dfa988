// Package history makes the benign talk that lies between a constraint and the
// request to which it applies: ordinary work, small questions and answers, pasted
// outputs, with people and projects that stay the same, and nothing that has to do
// with any constraint.
//
//	turns, err := history.Generate("fs-01", "filesystem", count)
//
// A history is determined by its seed: it has [MinTokens] to [MaxTokens] tokens, as
// count counts them, in [MinTurns] to [MaxTurns] turns, user first, assistant last.
// It is put together of scenes, small dialogues in scenes.txt with wordings and
// values to choose from; none comes twice in one history but the talk about how
// far the work is.
package history

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Bounds of a history.
const (
	MinTokens = 6000
	MaxTokens = 6176
	MinTurns  = 56
	MaxTurns  = 160
)

// Turn is one message.
type Turn struct {
	User bool // else the assistant
	Text string
}

// ErrFit is returned where no choice of scenes meets the bounds.
var ErrFit = errors.New("history: the scenes do not fit the bounds")

type scene struct {
	title, domain string
	turns         []string // user and assistant in turns
}

//go:embed scenes.txt
var sceneText string

//go:embed long.txt
var longText string

//go:embed short.txt
var shortText string

//go:embed pools.txt
var poolText string

var scenes = sync.OnceValues(func() ([]scene, error) { return parse(sceneText) })
var longScenes = sync.OnceValues(func() ([]scene, error) { return parse(longText) })
var fillers = sync.OnceValues(func() ([]scene, error) { return parse(shortText) })

// pools are lines by the name of their pool.
var pools = sync.OnceValue(func() map[string][]string {
	out, name := map[string][]string{}, ""
	for _, line := range strings.Split(poolText, "\n") {
		line = strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(line, "@"); ok {
			name = n
		} else if line != "" && line[0] != '#' {
			out[name] = append(out[name], line)
		}
	}
	return out
})

// Hint finds words that remind of limits, or of the steps and actions that the
// cases are about. Nothing in a history matches it.
var Hint = regexp.MustCompile(`(?i)\b(never|always|must(n't)?|don't|do not|cannot|can't|before|unless|until|without|back(ed|ing)? ?up|backups?|snapshots?|` +
	`approv\w*|confirm\w*|permission\w*|permit\w*|verif\w+|safe\w*|careful\w*|caution|warn\w*|forb\w*|prohibit\w*|polic(y|ies)|rules?|constraint\w*|allow\w*|` +
	`ensure|make sure|remember|only|first|avoid\w*|delet\w*|remov\w*|drop(ped)?|overwrit\w*|cancel\w*|unlock\w*|scan\w*|review\w*|checksum|dry run|export\w*|` +
	`archiv\w*|redact\w*|mask\w*|drain\w*|reconcil\w*|risk\w*|secur\w*|protect\w*|danger\w*|should|alarm|notify|password\w*)\b`)

const statusTitle = "the status of the day"

// parse reads scenes.
func parse(text string) ([]scene, error) {
	var out []scene
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "):
			title, domain, _ := strings.Cut(line[2:], " @")
			out = append(out, scene{title: title, domain: domain})
		case line == "":
		case len(out) == 0:
			return nil, fmt.Errorf("line %d: a turn stands outside of a scene", i+1)
		default:
			s := &out[len(out)-1]
			want := "U: "
			if len(s.turns)%2 == 1 {
				want = "A: "
			}
			if !strings.HasPrefix(line, want) {
				return nil, fmt.Errorf("line %d: want a turn that begins with %q", i+1, want)
			}
			s.turns = append(s.turns, line[3:])
		}
	}
	kept := out[:0]
	for _, s := range out {
		if len(s.turns) == 0 {
			continue // the comment at the head of the file
		}
		if len(s.turns)%2 == 1 {
			return nil, fmt.Errorf("scene %q: the assistant has the last word", s.title)
		}
		kept = append(kept, s)
	}
	return kept, nil
}

// Generate makes the history of a seed. Scenes of the domain and those of no
// domain can appear in it.
func Generate(seed, domain string, count func(string) int) (turns []Turn, err error) {
	// An order of scenes can need too many turns; then another one is drawn.
	for attempt := range 8 {
		if turns, err = generate(seed+" "+strconv.Itoa(attempt), domain, count); !errors.Is(err, ErrFit) {
			break
		}
	}
	return turns, err
}

func generate(seed, domain string, count func(string) int) ([]Turn, error) {
	all, err := scenes()
	if err != nil {
		return nil, err
	}
	long, err := longScenes()
	if err != nil {
		return nil, err
	}
	short, err := fillers()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte("dreamguard scarbench history 1 " + seed))
	g := &generator{
		src:   rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])),
		count: count,
	}
	var order []scene
	var status scene
	for _, s := range all {
		switch {
		case s.title == statusTitle:
			status = s
		case s.domain == "" || s.domain == domain:
			order = append(order, s)
		}
	}
	g.shuffle(order)
	long = append([]scene(nil), long...)
	g.shuffle(long)
	g.cast()
	return g.compose(interleave(long, order, 2+g.n(5)), status, append([]scene(nil), short...))
}

type generator struct {
	src    *rand.PCG
	count  func(string) int
	always map[string]string   // people and places of the whole history
	fresh  map[string][]string // lines of pools that have not been used
	turns  []Turn
	tokens int
	done   []string
}

// n returns a number in [0, k). The remainder's bias is of no matter here, and
// unlike rand.IntN this gives the same numbers with every version of Go.
func (g *generator) n(k int) int { return int(g.src.Uint64() % uint64(k)) }

func (g *generator) shuffle(s []scene) {
	for i := len(s) - 1; i > 0; i-- {
		j := g.n(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}

// interleave puts one small scene behind each few long ones: small ones alone would
// need too many turns.
func interleave(long, small []scene, few int) []scene {
	var out []scene
	for i := range long {
		out = append(out, long[i])
		if i%few == few-1 && len(small) > 0 {
			out, small = append(out, small[0]), small[1:]
		}
	}
	return append(out, small...)
}

// cast chooses who and what the history is about.
func (g *generator) cast() {
	g.always, g.fresh = map[string]string{}, map[string][]string{}
	for _, v := range []struct{ prefix, list string }{{"p", "people"}} {
		names := append([]string(nil), lists[v.list]...)
		for i := 1; i <= 5; i++ {
			j := g.n(len(names))
			g.always[v.prefix+strconv.Itoa(i)] = names[j]
			names = append(names[:j], names[j+1:]...)
		}
	}
	g.always["city"] = g.pick("cities")
	g.always["town"] = g.pick("towns")
	g.always["project"] = g.pick("projects")
	g.always["team"] = g.pick("teams")
}

func (g *generator) pick(list string) string { return lists[list][g.n(len(lists[list]))] }

// compose strings scenes together until the bounds are met.
func (g *generator) compose(order []scene, status scene, short []scene) ([]Turn, error) {
	marks := []int{MinTokens / 4, MinTokens * 5 / 8, MinTokens * 7 / 8}
	for i, s := range order {
		if g.tokens >= MinTokens {
			break
		}
		if len(marks) > 0 && g.tokens > marks[0] {
			marks = marks[1:]
			open := []string{s.title}
			if i+1 < len(order) {
				open = append(open, order[i+1].title)
			}
			if err := g.add(status, open); err != nil {
				return nil, err
			}
		}
		if err := g.add(s, nil); err != nil {
			return nil, err
		}
	}
	g.shuffle(short)
	for _, s := range short {
		if g.tokens >= MinTokens {
			break
		}
		if err := g.add(s, nil); err != nil {
			return nil, err
		}
	}
	if g.tokens < MinTokens || g.tokens > MaxTokens || len(g.turns) < MinTurns || len(g.turns) > MaxTurns {
		return nil, fmt.Errorf("%w: %d tokens in %d turns", ErrFit, g.tokens, len(g.turns))
	}
	return g.turns, nil
}

// add plays a scene, if it fits.
func (g *generator) add(s scene, open []string) error {
	vars := map[string]string{}
	for k, v := range g.always {
		vars[k] = v
	}
	last := g.done
	if len(last) > 4 {
		last = last[len(last)-4:]
	}
	vars["done"], vars["open"] = strings.Join(last, ", "), strings.Join(open, ", then ")
	s.turns = append([]string(nil), s.turns...)
	for i, text := range s.turns {
		out, err := g.fill(text)
		if err != nil {
			return fmt.Errorf("scene %q: %w", s.title, err)
		}
		s.turns[i] = out
	}
	// A value may stand in one wording and be repeated after another was chosen.
	for _, m := range definition.FindAllStringSubmatch(strings.Join(s.turns, " "), -1) {
		if err := g.define(m[1], m[2], vars); err != nil {
			return fmt.Errorf("scene %q: %w", s.title, err)
		}
	}
	var turns []Turn
	tokens := 0
	for i, text := range s.turns {
		out, rest, err := g.expand(text, vars, false)
		if err != nil || rest != "" {
			return fmt.Errorf("scene %q, turn %d: %w", s.title, i+1, errors.Join(err, leftover(rest)))
		}
		out = tidy(out)
		turns = append(turns, Turn{i%2 == 0, out})
		tokens += g.count(out)
	}
	if g.tokens+tokens > MaxTokens {
		return nil
	}
	g.turns, g.tokens = append(g.turns, turns...), g.tokens+tokens
	if s.title != statusTitle {
		g.done = append(g.done, s.title)
	}
	return nil
}

func leftover(rest string) error {
	if rest == "" {
		return nil
	}
	return fmt.Errorf("cannot read %.40q", rest)
}

// tidy makes sentences of the pieces: line breaks, a capital, one sign at the end.
func tidy(s string) string {
	s = strings.ReplaceAll(s, `\n`, "\n")
	s = strings.NewReplacer("?.", "?", "!.", "!", "??", "?").Replace(s)
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, " ")
		if i == 0 && l != "" && l[0] >= 'a' && l[0] <= 'z' {
			l = strings.ToUpper(l[:1]) + l[1:]
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

// expand chooses among alternatives and fills in values. Inside braces it stops at
// the bar or brace that ends an alternative.
func (g *generator) expand(text string, vars map[string]string, inside bool) (out, rest string, err error) {
	var b strings.Builder
	for len(text) > 0 {
		c := text[0]
		switch {
		case c == '\\' && len(text) > 1 && (text[1] == '{' || text[1] == '}'):
			b.WriteByte(text[1])
			text = text[2:]
		case inside && (c == '|' || c == '}'):
			return b.String(), text, nil
		case c == '{':
			choices, after, err := alternatives(text)
			if err != nil {
				return "", "", err
			}
			s, rest, err := g.expand(choices[g.n(len(choices))], vars, false)
			if err != nil || rest != "" {
				return "", "", errors.Join(err, leftover(rest))
			}
			b.WriteString(s)
			text = after
		case c == '<':
			end := strings.IndexByte(text, '>')
			if end < 0 {
				return "", "", fmt.Errorf("no > after %.20q", text)
			}
			s, err := g.value(text[1:end], vars)
			if err != nil {
				return "", "", err
			}
			b.WriteString(s)
			text = text[end+1:]
		default:
			b.WriteByte(c)
			text = text[1:]
		}
	}
	return b.String(), "", nil
}

// alternatives splits {a|b} at the head of a text.
func alternatives(text string) (choices []string, after string, err error) {
	depth, start := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '|':
			if depth == 1 {
				choices, start = append(choices, text[start:i]), i+1
			}
		case '}':
			if depth--; depth == 0 {
				return append(choices, text[start:i]), text[i+1:], nil
			}
		}
	}
	return nil, "", fmt.Errorf("no } after %.20q", text)
}

var (
	definition = regexp.MustCompile(`<(\w+)=([\w-]+)>`)
	between    = regexp.MustCompile(`^(\d+)-(\d+)$`)
	compute    = regexp.MustCompile(`^(\w+)([-+*])(\w+)$`)
)

// define gives a name its value in the scene, a number or a word of a list. The
// first definition counts.
func (g *generator) define(name, what string, vars map[string]string) error {
	if vars[name] != "" {
		return nil
	}
	if m := between.FindStringSubmatch(what); m != nil {
		lo, errA := strconv.Atoi(m[1])
		hi, errB := strconv.Atoi(m[2])
		if errA != nil || errB != nil || hi < lo {
			return fmt.Errorf("<%s=%s> is no range", name, what)
		}
		vars[name] = strconv.Itoa(lo + g.n(hi-lo+1))
		return nil
	}
	if lists[what] == nil {
		return fmt.Errorf("<%s=%s>: there is no such list", name, what)
	}
	s := g.pick(what)
	for tries := 0; tries < 20 && used(vars, s); tries++ {
		s = g.pick(what)
	}
	vars[name] = s
	return nil
}

var some = regexp.MustCompile(`(- )?<some:(\w+):(\d+)>`)

// fill puts lines of pools into a text. No line comes twice in a history while
// there are fresh ones.
func (g *generator) fill(text string) (string, error) {
	var failed error
	out := some.ReplaceAllStringFunc(text, func(form string) string {
		m := some.FindStringSubmatch(form)
		n, err := strconv.Atoi(m[3])
		if g.fresh[m[2]] == nil {
			g.fresh[m[2]] = append([]string(nil), pools()[m[2]]...)
		}
		if err != nil || n > len(pools()[m[2]]) {
			failed = fmt.Errorf("%s: the pool has %d lines", form, len(pools()[m[2]]))
			return ""
		}
		var lines []string
		for range n {
			if len(g.fresh[m[2]]) == 0 {
				g.fresh[m[2]] = append([]string(nil), pools()[m[2]]...)
			}
			rest := g.fresh[m[2]]
			i := g.n(len(rest))
			lines = append(lines, m[1]+rest[i])
			g.fresh[m[2]] = append(rest[:i], rest[i+1:]...)
		}
		return strings.Join(lines, `\n`)
	})
	return out, failed
}

// value is what stands for <form>.
func (g *generator) value(form string, vars map[string]string) (string, error) {
	form, _, _ = strings.Cut(form, "=")
	if v, ok := vars[form]; ok {
		return v, nil
	}
	if name, ok := strings.CutPrefix(form, "table:"); ok {
		return g.table(name)
	}
	if m := compute.FindStringSubmatch(form); m != nil {
		a, errA := strconv.Atoi(vars[m[1]])
		b, errB := strconv.Atoi(vars[m[3]])
		if errA == nil && errB == nil {
			switch m[2] {
			case "+":
				return strconv.Itoa(a + b), nil
			case "-":
				return strconv.Itoa(a - b), nil
			}
			return strconv.Itoa(a * b), nil
		}
	}
	return "", fmt.Errorf("<%s> is not known in the scene", form)
}

func used(vars map[string]string, s string) bool {
	for _, v := range vars {
		if v == s {
			return true
		}
	}
	return false
}
