package tokenize

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// The reference implementation takes its character properties from four Unicode
// versions at once, so neither Go's tables nor any other single version give its
// answers. unicode.txt holds what it really uses; testdata/unicode.py asked it.
//
//go:embed unicode.txt
var unicodeText string

// class is a set of properties of one character.
type class uint16

const (
	classControl    class = 1 << iota // dropped by clean_text
	classWhite                        // char::is_whitespace
	classPunct                        // isolated by BertPreTokenizer
	classHan                          // surrounded with spaces by handle_chinese_chars
	classMark                         // dropped by strip_accents
	classLetter                       // \p{L}
	classNumber                       // \p{N}
	classSpace                        // \s of patterns
	classNonstarter                   // canonical combining class other than 0
	classDecomposes                   // has a canonical decomposition
	classLower                        // has another lower case
	classSecond                       // may compose with the character before it
	classUnstable                     // decomposes, and composition does not give it back
)

// Hangul syllables decompose by arithmetic (The Unicode Standard, section 3.12).
const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	hangulLs, hangulVs, hangulTs       = 19, 21, 28
	hangulSs                           = hangulLs * hangulVs * hangulTs
)

func isHangul(r rune) bool { return r >= hangulS && r < hangulS+hangulSs }

// properties is unicode.txt in memory.
type properties struct {
	pages     [(utf8.MaxRune + 1) >> pageBits]uint16 // index into blocks
	blocks    [][1 << pageBits]class
	lower     map[rune][]rune
	ccc       map[rune]uint8   // of nonstarters
	decompose map[rune][]rune  // full canonical decompositions, without Hangul
	compose   map[[2]rune]rune // primary composites, without Hangul
}

const pageBits = 7

func (p *properties) class(r rune) class {
	return p.blocks[p.pages[uint32(r)>>pageBits]][uint32(r)&(1<<pageBits-1)]
}

// chars returns the properties. They are read once, at the first use: programs
// that tokenize nothing do not pay for them.
var chars = sync.OnceValue(func() *properties {
	p, err := readProperties(unicodeText)
	if err != nil {
		panic("tokenize: embedded unicode.txt: " + err.Error()) // a broken build
	}
	return p
})

func readProperties(text string) (*properties, error) {
	p := &properties{
		lower:     make(map[rune][]rune, 1500),
		ccc:       make(map[rune]uint8, 1000),
		decompose: make(map[rune][]rune, 2100),
		compose:   make(map[[2]rune]rune, 1000),
	}
	flat := make([]class, utf8.MaxRune+1)
	set := func(c class) func(string) error {
		return func(item string) error {
			first, last, err := parseRange(item)
			if err != nil {
				return err
			}
			for r := first; r <= last; r++ {
				flat[r] |= c
			}
			return nil
		}
	}
	sections := map[string]func(string) error{
		"[control]":     set(classControl),
		"[white]":       set(classWhite),
		"[punctuation]": set(classPunct),
		"[chinese]":     set(classHan),
		"[mark]":        set(classMark),
		"[letter]":      set(classLetter),
		"[number]":      set(classNumber),
		"[space]":       set(classSpace),
		"[lower]":       p.readLower,
		"[class]":       p.readClass,
		"[decompose]":   p.readDecompose,
	}
	var read func(string) error
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			if read = sections[line]; read == nil {
				return nil, fmt.Errorf("unknown section %s", line)
			}
			continue
		case read == nil:
			return nil, fmt.Errorf("%q stands before the first section", line)
		}
		for item := range strings.FieldsSeq(line) {
			if err := read(item); err != nil {
				return nil, fmt.Errorf("%q: %w", item, err)
			}
		}
	}
	p.expandDecompositions()
	for r := range p.lower {
		flat[r] |= classLower
	}
	for r := range p.ccc {
		flat[r] |= classNonstarter
	}
	for r := range p.decompose {
		flat[r] |= classDecomposes | classUnstable
	}
	for r := rune(hangulS); isHangul(r); r++ {
		flat[r] |= classDecomposes
	}
	for pair, r := range p.compose {
		flat[pair[1]] |= classSecond
		flat[r] &^= classUnstable
	}
	for r := rune(hangulV); r < hangulV+hangulVs; r++ {
		flat[r] |= classSecond
	}
	for r := rune(hangulT + 1); r < hangulT+hangulTs; r++ {
		flat[r] |= classSecond
	}
	known := make(map[[1 << pageBits]class]uint16)
	for i := range p.pages {
		block := [1 << pageBits]class(flat[i<<pageBits:])
		k, ok := known[block]
		if !ok {
			k = uint16(len(p.blocks))
			known[block] = k
			p.blocks = append(p.blocks, block)
		}
		p.pages[i] = k
	}
	return p, nil
}

// readLower reads FIRST-LAST/STEP+DISTANCE or CHARACTER=CHARACTER,CHARACTER.
func (p *properties) readLower(item string) error {
	if left, right, ok := strings.Cut(item, "="); ok {
		r, err := parseRune(left)
		if err != nil {
			return err
		}
		p.lower[r], err = parseRunes(right, ",")
		return err
	}
	span, rest, _ := strings.Cut(item, "/")
	first, last, err := parseRange(span)
	if err != nil {
		return err
	}
	sign := strings.IndexAny(rest, "+-")
	if sign < 0 {
		return fmt.Errorf("no distance")
	}
	step, err := parseRune(rest[:sign])
	if err != nil || step == 0 {
		return fmt.Errorf("bad step")
	}
	distance, err := parseRune(rest[sign+1:])
	if err != nil {
		return err
	}
	if rest[sign] == '-' {
		distance = -distance
	}
	for r := first; r <= last; r += step {
		p.lower[r] = []rune{r + distance}
	}
	return nil
}

func (p *properties) readClass(item string) error {
	span, value, _ := strings.Cut(item, "=")
	first, last, err := parseRange(span)
	if err != nil {
		return err
	}
	k, err := strconv.ParseUint(value, 16, 8)
	if err != nil {
		return err
	}
	for r := first; r <= last; r++ {
		p.ccc[r] = uint8(k)
	}
	return nil
}

// readDecompose reads one step of a decomposition; A=B+C means that B and C
// compose to A again.
func (p *properties) readDecompose(item string) error {
	left, right, _ := strings.Cut(item, "=")
	r, err := parseRune(left)
	if err != nil {
		return err
	}
	if !strings.Contains(right, "+") {
		p.decompose[r], err = parseRunes(right, ",")
		return err
	}
	to, err := parseRunes(right, "+")
	if err != nil {
		return err
	}
	if len(to) != 2 {
		return fmt.Errorf("a composite has two parts, not %d", len(to))
	}
	p.decompose[r] = to
	p.compose[[2]rune(to)] = r
	return nil
}

// expandDecompositions replaces what decomposes further, until nothing does.
func (p *properties) expandDecompositions() {
	var expand func(dst []rune, r rune) []rune
	expand = func(dst []rune, r rune) []rune {
		to, ok := p.decompose[r]
		if !ok {
			return append(dst, r)
		}
		for _, part := range to {
			dst = expand(dst, part)
		}
		return dst
	}
	full := make(map[rune][]rune, len(p.decompose))
	for r := range p.decompose {
		full[r] = expand(nil, r)
	}
	p.decompose = full
}

// appendLower appends the lower case of r.
func (p *properties) appendLower(dst []rune, r rune) []rune {
	if p.class(r)&classLower == 0 {
		return append(dst, r)
	}
	return append(dst, p.lower[r]...)
}

// appendDecomposed appends the full canonical decomposition of r.
func (p *properties) appendDecomposed(dst []rune, r rune) []rune {
	switch {
	case p.class(r)&classDecomposes == 0:
		return append(dst, r)
	case isHangul(r):
		s := r - hangulS
		dst = append(dst, hangulL+s/(hangulVs*hangulTs), hangulV+s%(hangulVs*hangulTs)/hangulTs)
		if t := s % hangulTs; t != 0 {
			dst = append(dst, hangulT+t)
		}
		return dst
	}
	return append(dst, p.decompose[r]...)
}

// composed returns the primary composite of a and b.
func (p *properties) composed(a, b rune) (rune, bool) {
	if a >= hangulL && a < hangulL+hangulLs && b >= hangulV && b < hangulV+hangulVs {
		return hangulS + ((a-hangulL)*hangulVs+b-hangulV)*hangulTs, true
	}
	if isHangul(a) && (a-hangulS)%hangulTs == 0 && b > hangulT && b < hangulT+hangulTs {
		return a + b - hangulT, true
	}
	if p.class(b)&classSecond == 0 {
		return 0, false
	}
	r, ok := p.compose[[2]rune{a, b}]
	return r, ok
}

// nonstarter packs a character with its combining class, so that a stable sort
// by the upper byte is the canonical ordering.
func (p *properties) nonstarter(r rune) uint32 { return uint32(p.ccc[r])<<24 | uint32(r) }

func sortNonstarters(pending []uint32) {
	if len(pending) > 1 {
		slices.SortStableFunc(pending, func(a, b uint32) int { return int(a>>24) - int(b>>24) })
	}
}

func parseRune(s string) (rune, error) {
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		return 0, err
	}
	if v > utf8.MaxRune {
		return 0, fmt.Errorf("%X is no character", v)
	}
	return rune(v), nil
}

func parseRunes(s, separator string) ([]rune, error) {
	var out []rune
	for part := range strings.SplitSeq(s, separator) {
		r, err := parseRune(part)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRange(s string) (first, last rune, err error) {
	left, right, ok := strings.Cut(s, "-")
	if first, err = parseRune(left); err != nil || !ok {
		return first, first, err
	}
	last, err = parseRune(right)
	return first, last, err
}
