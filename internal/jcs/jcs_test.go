package jcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The examples of RFC 8785, sections 3.2.2 and 3.2.3, and what else its rules say.
func TestTransform(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{
			"section 3.2.2",
			`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"section 3.2.3",
			`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		{"empty", " { } ", `{}`},
		{"nested", `{"b":[ ],"a":{"z":-0,"y":[{}]}}`, `{"a":{"y":[{}],"z":0},"b":[]}`},
		{"prefix first", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"control characters", `"\u0000\u001f\b\t\n\f\r\u007f\u2028"`, `"\u0000\u001f\b\t\n\f\r` + "\u007f\u2028" + `"`},
		{"not normalised", `"A\u030a"`, `"A` + "\u030a" + `"`},
	} {
		got, err := Transform([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
}

// RFC 8785, appendix B.
func TestNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		got, err := Append(nil, math.Float64frombits(bits))
		if err != nil || string(got) != want {
			t.Errorf("%016x: %s, %v, want %s", bits, got, err, want)
		}
	}
	for _, bits := range []uint64{0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000} {
		if _, err := Append(nil, math.Float64frombits(bits)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%016x: %v", bits, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, in := range []string{
		"", " ", "{", "}", "[1,]", "[1 2]", `{"a"}`, `{"a":1,}`, `{a:1}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, "nul", "true false", "01", "-", "1.", ".5", "1e", "+1", "1e999", "NaN",
		`"`, `"\x"`, `"\u12"`, `"\u123g"`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, `"\ud800x"`, "\"\n\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\ufeff{}",
		strings.Repeat("[", MaxDepth+2) + strings.Repeat("]", MaxDepth+2),
	} {
		if got, err := Transform([]byte(in)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%.40q: %s, %v", in, got, err)
		}
	}
	if _, err := Append(nil, 1); !errors.Is(err, ErrSyntax) {
		t.Errorf("a Go int: %v", err)
	}
	if _, err := Append(nil, "\xff"); !errors.Is(err, ErrSyntax) {
		t.Errorf("invalid UTF-8: %v", err)
	}
}

// What is accepted is JSON with the same value, and its form is a fixed point.
func FuzzTransform(f *testing.F) {
	for _, s := range []string{`{"b":1.50,"a":["x\u00e9",null,true]}`, `"\ud83d\ude00"`, `[1e21,-0,5e-324,123456789012345678]`, `{"a":{"a":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := Transform(in)
		if err != nil {
			return
		}
		again, err := Transform(got)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q became %q, then %q, %v", in, got, again, err)
		}
		var a, b any
		if err := json.Unmarshal(in, &a); err != nil {
			t.Fatalf("accepted %q: %v", in, err)
		}
		if err := json.Unmarshal(got, &b); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q became %q, another value (%v)", in, got, err)
		}
	})
}
