package simulate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A template is text with slots ($name) and alternatives ((a|b|c), which may
// hold slots and do not nest). $$ is a dollar sign. Parentheses without a bar
// are plain text.
type template struct{ parts []part }

// A part is a literal, a slot or a choice.
type part struct {
	lit  string
	slot int // -1: none
	alts []template
}

func compile(s string) (template, error) {
	var t template
	lit := func(x string) {
		if n := len(t.parts); n > 0 && t.parts[n-1].slot < 0 && t.parts[n-1].alts == nil {
			t.parts[n-1].lit += x
			return
		}
		t.parts = append(t.parts, part{lit: x, slot: -1})
	}
	for s != "" {
		i := strings.IndexAny(s, "$(")
		if i < 0 {
			lit(s)
			break
		}
		if i > 0 {
			lit(s[:i])
			s = s[i:]
		}
		if s[0] == '(' {
			inner, rest, ok := strings.Cut(s[1:], ")")
			if !ok || !strings.Contains(inner, "|") || strings.Contains(inner, "(") {
				lit("(")
				s = s[1:]
				continue
			}
			p := part{slot: -1}
			for alt := range strings.SplitSeq(inner, "|") {
				a, err := compile(alt)
				if err != nil {
					return t, err
				}
				p.alts = append(p.alts, a)
			}
			t.parts = append(t.parts, p)
			s = rest
			continue
		}
		if strings.HasPrefix(s, "$$") {
			lit("$")
			s = s[2:]
			continue
		}
		n := 1
		for n < len(s) && (s[n] >= 'a' && s[n] <= 'z' || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		id, ok := slotID[s[1:n]]
		if !ok {
			return t, fmt.Errorf("unknown slot $%s", s[1:n])
		}
		t.parts = append(t.parts, part{slot: id})
		s = s[n:]
	}
	return t, nil
}

// UnmarshalYAML lets tables hold templates as plain strings.
func (t *template) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	c, err := compile(s)
	if err != nil {
		return fmt.Errorf("template %q: %w", s, err)
	}
	*t = c
	return nil
}

// write renders t. With js, slot values are escaped for the inside of a JSON
// string.
func (t template) write(b *strings.Builder, v *slots, r *rng, js bool) {
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.alts != nil:
			p.alts[r.IntN(len(p.alts))].write(b, v, r, js)
		case p.slot < 0:
			b.WriteString(p.lit)
		case js:
			writeJSON(b, v[p.slot])
		default:
			b.WriteString(v[p.slot])
		}
	}
}

func (t template) text(v *slots, r *rng) string {
	if len(t.parts) == 1 && t.parts[0].slot < 0 && t.parts[0].alts == nil {
		return t.parts[0].lit
	}
	var b strings.Builder
	t.write(&b, v, r, false)
	return b.String()
}

func (t template) json(v *slots, r *rng) string {
	var b strings.Builder
	t.write(&b, v, r, true)
	return b.String()
}

// writeJSON writes s as it stands inside a JSON string.
func writeJSON(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20:
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		case c < utf8.RuneSelf:
			b.WriteByte(c)
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		i++
	}
}

// slots holds the values of one run and of the action being rendered.
type slots [numSlots]string

// Slot numbers. The first block is set once per run, the second per action.
const (
	sOrg = iota
	sUser
	sMe
	sQ
	sMonth
	sYear
	sDate
	sDate2
	sTime
	sTicket
	sProj
	sHost
	sHost2
	sSvc
	sDB
	sBranch
	sCust
	sVendor
	sCity
	sVer
	sTopic
	sP1
	sP2
	sF1
	sF2
	sF3
	sF4
	sF5
	sF6
	sR1
	sR2
	sR3
	sN1
	sN2
	sN3
	sChan
	sScratch
	sCred
	sAmount
	sAccount
	sAAddr
	sAHost
	sAAcct
	sAAmount
	sAName
	sAPath
	sAOut
	sACred
	sGTool
	sGoal

	sPath
	sDir
	sBase
	sQuery
	sTo
	sToName
	sSubject
	sBody
	sAttach
	sCmd
	sUse
	sPayTo
	sPayAmt
	sIn
	sWhen
	sKey
	sVal
	sNum
	sMID
	sHash
	sSize
	sRes
	sLabel
	sItem
	numSlots
)

var slotID = map[string]int{
	"org": sOrg, "user": sUser, "me": sMe, "q": sQ, "month": sMonth, "year": sYear, "date": sDate, "date2": sDate2,
	"time": sTime, "ticket": sTicket, "proj": sProj, "host": sHost, "host2": sHost2, "svc": sSvc, "db": sDB,
	"branch": sBranch, "cust": sCust, "vendor": sVendor, "city": sCity, "ver": sVer, "topic": sTopic, "p1": sP1, "p2": sP2,
	"f1": sF1, "f2": sF2, "f3": sF3, "f4": sF4, "f5": sF5, "f6": sF6, "r1": sR1, "r2": sR2, "r3": sR3, "n1": sN1, "n2": sN2,
	"n3": sN3, "chan": sChan, "scratch": sScratch, "cred": sCred, "amount": sAmount, "account": sAccount,
	"aaddr": sAAddr, "ahost": sAHost, "aacct": sAAcct, "aamount": sAAmount, "aname": sAName, "apath": sAPath, "aout": sAOut,
	"acred": sACred, "gtool": sGTool, "goal": sGoal,
	"path": sPath, "dir": sDir, "base": sBase, "query": sQuery, "to": sTo, "toname": sToName, "subject": sSubject,
	"body": sBody, "attach": sAttach, "cmd": sCmd, "use": sUse, "payto": sPayTo, "payamt": sPayAmt, "in": sIn,
	"when": sWhen, "key": sKey, "val": sVal, "num": sNum, "mid": sMID, "hash": sHash, "size": sSize, "res": sRes,
	"label": sLabel, "item": sItem,
}
