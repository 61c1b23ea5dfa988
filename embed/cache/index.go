package cache

import "encoding/binary"

// index finds the row of a key. It is an open-addressing table of one word per
// slot, since a cache of many million texts keeps it in memory: 11 to 21 bytes
// per text beside the 16 of the key, which is with its segment, and nothing that
// the collector has to look at.
//
// A used slot holds, from its top bit down, 23 bits of the key, the number of
// the segment from 1, and the row in it. Equal bits are not yet equal keys: the
// caller compares those in the segment, which others than the right one reach
// once in some million times.
type index struct {
	slots []uint64 // length a power of two, 0 = free
	n     int
}

const (
	rowBits = 26 // a segment of 1 GiB has fewer rows, even with vectors of one value
	segBits = 15 // maxSegments needs as many
	tagMask = 1<<64 - 1<<(rowBits+segBits)
)

func slotOf(k Key, r ref) uint64 {
	return binary.LittleEndian.Uint64(k[:])&tagMask | uint64(r.seg+1)<<rowBits | uint64(r.row)
}

func refOf(slot uint64) ref {
	return ref{seg: uint32(slot>>rowBits)&(1<<segBits-1) - 1, row: uint32(slot) & (1<<rowBits - 1)}
}

// find returns the row for which same reports true, among those whose key may be k.
func (x *index) find(k Key, same func(ref) bool) (ref, bool) {
	if len(x.slots) == 0 {
		return ref{}, false
	}
	h := binary.LittleEndian.Uint64(k[:])
	mask := uint64(len(x.slots) - 1)
	for at := h & mask; x.slots[at] != 0; at = (at + 1) & mask {
		if s := x.slots[at]; (s^h)&tagMask == 0 {
			if r := refOf(s); same(r) {
				return r, true
			}
		}
	}
	return ref{}, false
}

// add enters a key that find did not find. There must be room: see reserve.
func (x *index) add(k Key, r ref) {
	mask := uint64(len(x.slots) - 1)
	at := binary.LittleEndian.Uint64(k[:]) & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = slotOf(k, r)
	x.n++
}

// reserve makes room for more keys. The slots hold too little of a key to move
// it, so keyOf must give the keys of the rows that were entered.
func (x *index) reserve(more int, keyOf func(ref) Key) {
	size := max(len(x.slots), 1<<10)
	for 4*(x.n+more) > 3*size {
		size *= 2
	}
	if size == len(x.slots) {
		return
	}
	old := x.slots
	x.slots, x.n = make([]uint64, size), 0
	for _, s := range old {
		if s != 0 {
			r := refOf(s)
			x.add(keyOf(r), r)
		}
	}
}
