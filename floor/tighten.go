package floor

import (
	"math/big"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Comparison says how mode Tighten orders the values of a field.
type Comparison string

// The comparisons. A value that cannot be compared counts as wider.
const (
	CompareSubset   Comparison = "subset"   // lists: a part of the list is narrower
	CompareSuperset Comparison = "superset" // lists: a list with more is narrower, such as one of denials
	ComparePath     Comparison = "path"     // a path, or each of a list, inside the old one is narrower
	CompareCIDR     Comparison = "cidr"     // an address or network, or each of a list, inside the old one is narrower
	CompareLower    Comparison = "lower"    // a lower number is narrower
	CompareHigher   Comparison = "higher"   // a higher number is narrower
	CompareTrue     Comparison = "true"     // true is narrower than false
	CompareFalse    Comparison = "false"    // false is narrower than true
	CompareOrder    Comparison = "order"    // a later value in the rule's order is narrower
)

func comparisons() []string {
	return []string{"subset", "superset", "path", "cidr", "lower", "higher", "true", "false", "order"}
}

func (c Comparison) valid() bool { return slices.Contains(comparisons(), string(c)) }

// narrower reports whether b may become a under mode Tighten: a is b, or narrower
// than b.
func (r Rule) narrower(b, a *node) bool {
	if b.tag != "" || a.tag != "" || b.other != "" || a.other != "" {
		return false
	}
	switch r.Compare {
	case CompareSubset:
		return covered(a, b, func(x, y *node) bool { return equalNodes(x, y) })
	case CompareSuperset:
		return a.kind == listKind && covered(b, a, func(x, y *node) bool { return equalNodes(x, y) })
	case ComparePath:
		return covered(a, b, func(x, y *node) bool { return insidePath(x, y) })
	case CompareCIDR:
		return covered(a, b, func(x, y *node) bool { return insideNetwork(x, y) })
	case CompareLower, CompareHigher:
		x, okX := number(b)
		y, okY := number(a)
		if !okX || !okY {
			return false
		}
		if r.Compare == CompareLower {
			return y.Cmp(x) <= 0
		}
		return y.Cmp(x) >= 0
	case CompareTrue, CompareFalse:
		return b.kind == boolKind && a.kind == boolKind && (a.scalar == string(r.Compare) || a.scalar == b.scalar)
	case CompareOrder:
		from, to := orderOf(r.Order, b), orderOf(r.Order, a)
		return from >= 0 && to >= from
	}
	return false
}

// covered reports whether each element of a is inside some element of b. Both
// are lists, or both single values.
func covered(a, b *node, inside func(x, y *node) bool) bool {
	if a.kind != listKind || b.kind != listKind {
		return a.kind == textKind && b.kind == textKind && inside(a, b)
	}
	for _, x := range a.items {
		if !slices.ContainsFunc(b.items, func(y *node) bool { return inside(x, y) }) {
			return false
		}
	}
	return true
}

// insidePath reports whether path x lies in path y. Paths that a reader may
// expand or resolve are not compared.
func insidePath(x, y *node) bool {
	if equalNodes(x, y) {
		return true
	}
	if x.kind != textKind || y.kind != textKind {
		return false
	}
	for _, s := range []string{x.scalar, y.scalar} {
		if s == "" || strings.ContainsAny(s, "$%*?[]{}\\\x00") || strings.Contains("/"+s+"/", "/../") || strings.TrimSpace(s) != s {
			return false
		}
	}
	in, out := path.Clean(x.scalar), path.Clean(y.scalar)
	if strings.HasPrefix(in, "/") != strings.HasPrefix(out, "/") || strings.HasPrefix(in, "~") != strings.HasPrefix(out, "~") {
		return false
	}
	if out == "/" || in == out {
		return true
	}
	if out == "." {
		return !strings.HasPrefix(in, "~")
	}
	return strings.HasPrefix(in, out+"/")
}

// insideNetwork reports whether address or network x lies in y. An unspecified
// address (0.0.0.0, ::) is what a server listens on to be reached on every
// address of the family, :: on those of both.
func insideNetwork(x, y *node) bool {
	if equalNodes(x, y) {
		return true
	}
	in, ok := network(x)
	out, ok2 := network(y)
	if !ok || !ok2 {
		return false
	}
	if out.Bits() == 0 && out.Addr().Is6() {
		return true
	}
	return in.Addr().Is4() == out.Addr().Is4() && in.Bits() >= out.Bits() && out.Contains(in.Addr())
}

func network(n *node) (netip.Prefix, bool) {
	if n.kind != textKind {
		return netip.Prefix{}, false
	}
	s := strings.Trim(n.scalar, "[]")
	switch strings.ToLower(s) {
	case "localhost":
		s = "127.0.0.1"
	case "*":
		s = "::"
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	if a.IsUnspecified() {
		return netip.PrefixFrom(a, 0), true
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

func number(n *node) (*big.Float, bool) {
	if n.kind != numberKind {
		return nil, false
	}
	f, ok := new(big.Float).SetString(strings.TrimPrefix(n.scalar, "f"))
	return f, ok
}

func orderOf(order []string, n *node) int {
	if n.kind != textKind && n.kind != boolKind {
		return -1
	}
	return slices.IndexFunc(order, func(s string) bool { return strings.EqualFold(s, n.scalar) })
}
