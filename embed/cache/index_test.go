package cache

import (
	"fmt"
	"testing"
)

// The table agrees with a map, through several growths and at its largest
// segment and row numbers.
func TestIndex(t *testing.T) {
	var x index
	want := map[Key]ref{}
	keys := map[ref]Key{}
	keyOf := func(r ref) Key { return keys[r] }
	for i := range 50_000 {
		k := KeyOf(fmt.Sprint(i))
		r := ref{seg: uint32(i*7919) % maxSegments, row: uint32(1<<rowBits - 1 - i)}
		if _, ok := x.find(k, func(r ref) bool { return keyOf(r) == k }); ok {
			t.Fatalf("key %d was found before it was added", i)
		}
		x.reserve(1, keyOf)
		x.add(k, r)
		want[k], keys[r] = r, k
	}
	if x.n != len(want) || 4*x.n > 3*len(x.slots) || len(x.slots)&(len(x.slots)-1) != 0 {
		t.Errorf("%d keys in %d slots", x.n, len(x.slots))
	}
	tries := 0
	for k, r := range want {
		got, ok := x.find(k, func(r ref) bool { tries++; return keyOf(r) == k })
		if !ok || got != r {
			t.Fatalf("find gave %v, %v, want %v", got, ok, r)
		}
	}
	if tries > len(want)*101/100 {
		t.Errorf("%d keys were compared to find %d: the tag does not tell them apart", tries, len(want))
	}
}

// Keys that agree in their first eight bytes are told apart by the rest.
func TestIndexCollision(t *testing.T) {
	a := KeyOf("a")
	b := a
	b[15]++
	keys := []Key{a, b}
	keyOf := func(r ref) Key { return keys[r.row] }
	var x index
	x.reserve(2, keyOf)
	for i, k := range keys {
		if _, ok := x.find(k, func(r ref) bool { return keyOf(r) == k }); ok {
			t.Fatalf("key %d was found before it was added", i)
		}
		x.add(k, ref{row: uint32(i)})
	}
	for i, k := range keys {
		if r, ok := x.find(k, func(r ref) bool { return keyOf(r) == k }); !ok || int(r.row) != i {
			t.Errorf("key %d is at %v, %v", i, r, ok)
		}
	}
}
