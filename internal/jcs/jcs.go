// Package jcs writes JSON in the one form of RFC 8785 (JSON Canonicalization
// Scheme), so that equal values have equal bytes and can be hashed.
//
//	b, err := jcs.Transform([]byte(`{"b": 1.0, "a": "\u0041"}`)) // {"a":"A","b":1}
//
// What RFC 8785 takes for granted of its input (RFC 7493, I-JSON) is checked: a
// member that stands twice, half of a surrogate pair, invalid UTF-8 and a number
// beyond a float64 are errors.
package jcs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is wrapped by all errors about what is not I-JSON.
var ErrSyntax = errors.New("not canonicalisable JSON")

// MaxDepth bounds how deep arrays and objects may nest.
const MaxDepth = 500

// Transform returns the canonical form of one JSON text.
func Transform(b []byte) ([]byte, error) {
	v, err := Parse(b)
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, len(b)), v)
}

// Append appends the canonical form of a value as Parse returns them: nil, bool,
// float64, string, []any or map[string]any.
func Append(dst []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case float64:
		return appendNumber(dst, v)
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = Append(dst, x); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.SortedFunc(maps.Keys(v), compareUTF16) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendString(dst, name); err != nil {
				return nil, err
			}
			if dst, err = Append(append(dst, ':'), v[name]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, fmt.Errorf("%w: a value of type %T", ErrSyntax, v)
}

// compareUTF16 orders names by their UTF-16 code units (section 3.2.3), which
// differs from the order of UTF-8 above U+FFFF only.
func compareUTF16(a, b string) int {
	for len(a) > 0 && len(b) > 0 {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return cmp.Compare(firstUnits(x), firstUnits(y))
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// firstUnits is the UTF-16 form of a rune as one number that orders like it.
func firstUnits(r rune) uint32 {
	if r < 0x10000 {
		return uint32(r) << 16
	}
	hi, lo := utf16.EncodeRune(r)
	return uint32(hi)<<16 | uint32(lo)
}

// appendNumber writes x as ECMAScript does (section 3.2.2.3).
func appendNumber(dst []byte, x float64) ([]byte, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%w: the number %v", ErrSyntax, x)
	}
	if x == 0 { // minus zero too
		return append(dst, '0'), nil
	}
	if a := math.Abs(x); 1e-6 <= a && a < 1e21 {
		return strconv.AppendFloat(dst, x, 'f', -1, 64), nil
	}
	dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') { // e-07 becomes e-7
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// appendString writes s with the fewest escapes (section 3.2.2.2).
func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%w: invalid UTF-8", ErrSyntax)
	}
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"'), nil
}
