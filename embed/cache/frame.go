package cache

import (
	"encoding/binary"
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// The Arrow reader allocates as many fields, children and metadata entries as a
// file claims to have, so a hostile file of 500 bytes could ask for any amount
// of memory. checkFrame looks at those counts first: a segment has exactly two
// fields, one batch, and neither metadata, dictionaries nor compression.

// Offsets of table fields in a vtable, from the Arrow format's Footer.fbs,
// Schema.fbs and Message.fbs: 4 plus twice the field's number.
const (
	footerSchema       = 6
	footerDictionaries = 8
	footerBatches      = 10
	footerMetadata     = 12
	schemaFields       = 6
	schemaMetadata     = 8
	fieldDictionary    = 12
	fieldChildren      = 14
	fieldMetadata      = 16
	messageHeader      = 8
	messageMetadata    = 12
	batchNodes         = 6
	batchBuffers       = 8
	batchCompression   = 10
	batchVariadic      = 12
)

const (
	arrowMagic = "ARROW1"
	blockSize  = 24 // struct Block: offset int64, metadata length int32, padding, body length int64
)

var errFrame = errors.New("its Arrow structure is broken")

// checkFrame reports whether the claims of an Arrow file are those of a
// segment. It may panic on offsets that lead out of the file.
func checkFrame(data []byte) error {
	tail := len(arrowMagic) + 4
	if len(data) < 8+tail || string(data[:len(arrowMagic)]) != arrowMagic || string(data[len(data)-len(arrowMagic):]) != arrowMagic {
		return errors.New("it is no Arrow file")
	}
	size := int64(binary.LittleEndian.Uint32(data[len(data)-tail:]))
	if size < 8 || size > maxMetadata || size > int64(len(data)-tail-8) {
		return errFrame
	}
	footer := root(data[len(data)-tail-int(size) : len(data)-tail])
	schema, ok := table(footer, footerSchema)
	if !ok {
		return errFrame
	}
	for _, want := range []struct {
		t     *flatbuffers.Table
		field flatbuffers.VOffsetT
		what  string
		count int
	}{
		{footer, footerDictionaries, "dictionaries", 0},
		{footer, footerMetadata, "metadata entries", 0},
		{footer, footerBatches, "record batches", 1},
		{schema, schemaMetadata, "metadata entries", 0},
		{schema, schemaFields, "columns", 2},
	} {
		if n := count(want.t, want.field); n != want.count {
			return fmt.Errorf("it has %d %s, want %d", n, want.what, want.count)
		}
	}
	if err := checkFields(schema, schemaFields, 1); err != nil {
		return err
	}
	block := footer.Vector(flatbuffers.UOffsetT(footer.Offset(footerBatches)))
	return checkMessage(data, footer.Bytes[block:block+blockSize])
}

// checkFields checks the fields of a schema, or the children of a field, which
// may be nested depth levels further.
func checkFields(t *flatbuffers.Table, list flatbuffers.VOffsetT, depth int) error {
	for i := range count(t, list) {
		at := t.Vector(flatbuffers.UOffsetT(t.Offset(list))) + flatbuffers.UOffsetT(4*i)
		f := &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}
		if count(f, fieldChildren) > depth || count(f, fieldMetadata) > 0 || f.Offset(fieldDictionary) != 0 {
			return errors.New("its columns are not keys and vectors")
		}
		if depth > 0 {
			if err := checkFields(f, fieldChildren, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMessage checks the head of the record batch that a footer's block points
// to.
func checkMessage(data, block []byte) error {
	offset := int64(binary.LittleEndian.Uint64(block))
	size := int64(int32(binary.LittleEndian.Uint32(block[8:])))
	// A message starts with a continuation mark and its length, four bytes each.
	if offset < 8 || size < 16 || size > maxMetadata || offset > int64(len(data))-size {
		return errFrame
	}
	message := root(data[offset+8 : offset+size])
	batch, ok := table(message, messageHeader)
	if !ok {
		return errFrame
	}
	// Nodes: keys, lists, values. Buffers: validity and data of keys and of
	// values, validity of lists.
	if count(batch, batchNodes) != 3 || count(batch, batchBuffers) != 5 {
		return errors.New("its record batch is not keys and vectors")
	}
	if count(message, messageMetadata) > 0 || batch.Offset(batchCompression) != 0 || batch.Offset(batchVariadic) != 0 {
		return errors.New("its record batch is compressed, or has metadata")
	}
	return nil
}

func root(b []byte) *flatbuffers.Table {
	return &flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
}

// table returns the table that a field points to.
func table(t *flatbuffers.Table, field flatbuffers.VOffsetT) (*flatbuffers.Table, bool) {
	o := flatbuffers.UOffsetT(t.Offset(field))
	if o == 0 {
		return nil, false
	}
	return &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(o + t.Pos)}, true
}

// count returns the length of a vector, 0 for one that is absent.
func count(t *flatbuffers.Table, field flatbuffers.VOffsetT) int {
	o := flatbuffers.UOffsetT(t.Offset(field))
	if o == 0 {
		return 0
	}
	return t.VectorLen(o)
}
