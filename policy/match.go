package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// compiled is a rule, ready to be compared with calls.
type compiled struct {
	Rule
	scope     phrase
	except    []phrase
	condition condition
	verb      string // of the step, "backup" where the rule says "take a dump"
	step      class
	object    phrase // of the step
	medium    string // the one way of sending that the rule is about
}

func compileRule(r Rule) *compiled {
	c := &compiled{Rule: r, scope: newPhrase(r.Scope.Text, r.Scope.Values), condition: parseCondition(r.Condition)}
	for _, e := range r.Scope.Except {
		p := newPhrase(e, valuesIn(e))
		c.except = append(c.except, p)
	}
	c.verb = stepVerb(r.Requires)
	c.step = classOf(c.verb)
	c.object = newPhrase(r.Requires.Object, valuesIn(r.Requires.Object))
	for _, a := range r.Trigger.Actions {
		if m := mediums[a]; m != "" {
			c.medium = m
		}
	}
	return c
}

// stepVerb is the verb of a step, taken from its noun where the verb says little.
func stepVerb(s Step) string {
	if light[s.Action] || s.Action == "have" {
		found := ""
		splitWords(s.Object, func(w string) {
			if v, ok := stepNouns[w]; ok && found == "" {
				found = v
			}
		})
		if found != "" {
			return found
		}
	}
	return s.Action
}

// valuesIn returns the paths, addresses and ids in a text.
func valuesIn(text string) []string {
	var out []string
	for _, t := range tokenize(text) {
		if t.value {
			out = append(out, text[t.start:t.end])
		}
	}
	return out
}

// mediums tell ways of sending apart.
var mediums = map[string]string{"email": "email", "mail": "email", "e-mail": "email", "sms": "message", "text": "message", "call": "call", "phone": "call"}

// changes are the classes that "change", "alter" and "modify" stand for.
var changes = []class{"delete", "modify", "move", "touch", "import", "merge", "disable", "enable", "close", "open", "encrypt", "install"}

// binds reports whether a rule is about a call.
func (c *compiled) binds(p *parsedCall, now time.Time) bool {
	return c.bindsAction(p) && c.scope.found(p) && !c.spares(p) && c.condition.met(p, now)
}

func (p *parsedCall) changesSomething() bool {
	if p.tool.ReadOnly {
		return false
	}
	return len(p.classes) == 0 || slices.ContainsFunc(p.classes, func(k class) bool { return !readsOnly[k] })
}

func (c *compiled) bindsAction(p *parsedCall) bool {
	if len(c.Trigger.Actions) == 0 {
		return p.changesSomething()
	}
	for _, a := range c.Trigger.Actions {
		k := classOf(a)
		switch {
		case k == "touch", k == "use":
			if p.changesSomething() || k == "use" {
				return true
			}
			continue
		case slices.Contains(p.verbs, a), p.has(k):
			if c.medium != "" && k == "send" && slices.ContainsFunc(p.verbs, func(v string) bool { return mediums[v] != "" && mediums[v] != c.medium }) {
				continue // a text message is no e-mail
			}
			return true
		}
		also := []class(nil)
		switch {
		case a == "change" || a == "alter" || a == "modify":
			also = changes
		case k == "share" || a == "release":
			also = []class{"send", "upload", "grant", "share"}
		case k == "upload":
			also = []class{"send", "share"}
		case a == "write":
			also = []class{"create", "store", "upload"}
		case k == "pay":
			also = []class{"process"}
		case k == "cancel" && c.scope.is("email", "event", "booking", "subscription", "reservation", "order", "flight", "hotel"):
			also = []class{"delete"}
		case k == "delete":
			if slices.Contains(p.verbs, "terminate") || slices.Contains(p.verbs, "cancel") && c.scope.is("event") {
				return true
			}
		case k == "deploy":
			also = []class{"install"}
		case k == "book":
			if p.has("create") && p.words["email"] {
				also = nil
			}
		case k == "send" && p.has("share") && c.medium == "":
			also = []class{"share"}
		}
		if slices.ContainsFunc(also, p.has) {
			return true
		}
		if len(p.classes) == 0 && p.words[stem(a)] {
			return true
		}
	}
	return false
}

func (p *parsedCall) has(k class) bool { return slices.Contains(p.classes, k) }

func (p phrase) is(words ...string) bool {
	for _, w := range words {
		if p.head == stem(w) {
			return true
		}
	}
	return false
}

// found reports whether the object that a phrase names is one of a call: a value
// is met by a target, and words by what stands in the call. Words that a call
// cannot show, because it names its object by an id alone, count as met.
func (o *phrase) found(p *parsedCall) bool {
	if len(o.values) > 0 {
		return o.valuesFound(p)
	}
	if len(o.words) == 0 {
		return true
	}
	head := p.words[o.head]
	for _, k := range p.classes {
		head = head || typical[k][o.head]
	}
	missing, named := 0, 0
	for _, w := range o.words {
		switch {
		case p.named[w]:
			named++
		case p.words[w]:
		case w == o.head && head:
		case contrasts[w] > 0:
			if o.contrasted(w, p) {
				return false
			}
		default:
			missing++
		}
	}
	switch {
	case missing == 0 && head:
		return true
	case !head: // the kind of object is not said, but its name is
		return named > 0 && missing <= 1 && !p.words[""] && named >= (len(o.words)+1)/2
	}
	return p.opaque() // "customer records", and record 17 is to go
}

// contrasted reports whether a call says that its object is of another kind than
// w: a staging database where the rule speaks of production.
func (o *phrase) contrasted(w string, p *parsedCall) bool {
	for other, group := range contrasts {
		if other != w && group == contrasts[w] && p.words[other] {
			return true
		}
	}
	return false
}

// opaque reports whether the primary target of a call is an id, of which nothing
// can be read.
func (p *parsedCall) opaque() bool {
	if len(p.targets) == 0 {
		return true
	}
	for _, t := range p.targets[0].values {
		letters, digits := 0, 0
		for _, r := range t.folded {
			switch {
			case unicode.IsLetter(r):
				letters++
			case unicode.IsDigit(r):
				digits++
			}
		}
		if digits == 0 || letters > 8 {
			return false
		}
	}
	return true
}

func (o *phrase) valuesFound(p *parsedCall) bool {
	for _, v := range o.values {
		for _, b := range p.targets {
			for _, t := range b.values {
				if v.touches(t) {
					return true
				}
			}
		}
		for _, l := range p.leaves {
			if len(l.value) <= 512 {
				if t := newTarget(l.value); v.touches(t) && !(v.ranged && t.ranged && len(p.targets) > 0 && v.prefix == "" && l.name != p.targets[0].name) {
					return true
				}
			} else if !v.glob && len(v.folded) > 3 && strings.Contains(strings.ToLower(l.value), v.folded) {
				return true
			}
		}
		if v.folded != "" && !v.ranged && p.words[stem(v.folded)] {
			return true
		}
	}
	return false
}

// spares reports whether every target of a call is an exception of the rule.
func (c *compiled) spares(p *parsedCall) bool {
	for i := range c.except {
		e := &c.except[i]
		if len(e.values) > 0 {
			if len(p.targets) == 0 {
				continue
			}
			all := true
			for _, t := range p.targets[0].values {
				all = all && slices.ContainsFunc(e.values, func(v target) bool { return v.covers(t, false) || v.folded == t.folded })
			}
			if all {
				return true
			}
			continue
		}
		all := len(e.words) > 0
		for _, w := range e.words {
			all = all && p.words[w]
		}
		if all {
			return true
		}
	}
	return false
}

// condition is what of a rule's condition can be evaluated.
type condition struct {
	op       byte // '>' or '<' of an amount, 0: none
	amount   float64
	equal    bool
	days     map[time.Weekday]bool
	from, to int // hours, [from, to), where from != to
}

var (
	amountWords = regexp.MustCompile(`(?i)\b(over|above|exceed(?:s|ing)?|more than|greater than|larger than|higher than|beyond|below|under|less than|at least|at most|up to|fewer than)\s+(?:[$€£]|usd|eur|gbp|chf)?\s*(\d[\d,.]*)\s*(k|m|thousand|million)?\b`)
	hourWords   = regexp.MustCompile(`(?i)\b(after|before)\s+(\d{1,2})(?::\d\d)?\s*(am|pm|a\.m\.|p\.m\.)?(?:\s|$)`)
	dayWords    = regexp.MustCompile(`(?i)\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b`)
)

var weekdays = map[string]time.Weekday{"mon": 1, "tues": 2, "wednes": 3, "thurs": 4, "fri": 5, "satur": 6, "sun": 0}

func parseCondition(s string) condition {
	var c condition
	if s == "" || strings.HasPrefix(s, "unless") {
		return c
	}
	if m := amountWords.FindStringSubmatch(s); m != nil {
		if v, err := strconv.ParseFloat(strings.TrimRight(strings.ReplaceAll(m[2], ",", ""), "."), 64); err == nil {
			switch strings.ToLower(m[3]) {
			case "k", "thousand":
				v *= 1e3
			case "m", "million":
				v *= 1e6
			}
			c.op, c.amount = '>', v
			switch strings.ToLower(m[1]) {
			case "below", "under", "less than", "fewer than":
				c.op = '<'
			case "at most", "up to":
				c.op, c.equal = '<', true
			case "at least":
				c.equal = true
			}
			return c
		}
	}
	lower := strings.ToLower(s)
	if found := dayWords.FindAllStringSubmatch(lower, 8); found != nil {
		c.days = map[time.Weekday]bool{}
		for _, m := range found {
			c.days[weekdays[m[1]]] = true
		}
	}
	if strings.Contains(lower, "weekend") {
		c.days = map[time.Weekday]bool{time.Saturday: true, time.Sunday: true}
	}
	switch m := hourWords.FindStringSubmatch(lower); {
	case strings.Contains(lower, "business hours") || strings.Contains(lower, "office hours") || strings.Contains(lower, "working hours"):
		if !strings.Contains(lower, "outside") {
			c.from, c.to = 8, 18
			c.days = map[time.Weekday]bool{1: true, 2: true, 3: true, 4: true, 5: true}
		}
	case strings.Contains(lower, "at night"):
		c.from, c.to = 20, 7
	case m != nil:
		h, _ := strconv.Atoi(m[2])
		if strings.HasPrefix(m[3], "p") && h < 12 {
			h += 12
		}
		if c.from, c.to = h%24, 24; m[1] == "before" {
			c.from, c.to = 0, h%24
		}
	}
	return c
}

// met reports whether the condition holds, or cannot be evaluated.
func (c condition) met(p *parsedCall, now time.Time) bool {
	if c.op != 0 && len(p.numbers) > 0 {
		for _, n := range p.numbers {
			if c.op == '>' && n > c.amount || c.op == '<' && n < c.amount || c.equal && n == c.amount {
				return true
			}
		}
		return false
	}
	if now.IsZero() {
		return true
	}
	if c.days != nil && !c.days[now.Weekday()] {
		return false
	}
	if h := now.Hour(); c.from < c.to && (h < c.from || h >= c.to) || c.from > c.to && h < c.from && h >= c.to {
		return false
	}
	return true
}
