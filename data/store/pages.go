package store

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/dreamguard/dreamguard/internal/lines"
)

// Bounds of one Parquet page. The library takes a page's sizes from the file
// and unpacks whatever is there, so they are checked before it sees the page.
const (
	maxPage   = 2*lines.Max + 1<<20 // bytes unpacked: the largest row, and the slack of zstd's upper bound
	maxValues = maxSteps + 1<<16    // values; the levels of a page can repeat one value without taking space
)

// checkPages walks over the pages of f without decoding them and refuses one
// that unpacks to more than limit bytes.
func checkPages(f *parquet.File, r io.ReaderAt, size int64, limit int) error {
	for g, group := range f.Metadata().RowGroups {
		for _, col := range group.Columns {
			m := &col.MetaData
			start := m.DataPageOffset
			if d := m.DictionaryPageOffset; d > 0 && d < start {
				start = d
			}
			if start < 0 || m.TotalCompressedSize < 0 || start > size || m.TotalCompressedSize > size-start {
				return fmt.Errorf("row group %d, column %s: lies outside the file: it is cut short or damaged", g, strings.Join(m.PathInSchema, "."))
			}
			if err := checkChunk(io.NewSectionReader(r, start, m.TotalCompressedSize), m.Codec, limit); err != nil {
				return fmt.Errorf("row group %d, column %s: %w", g, strings.Join(m.PathInSchema, "."), err)
			}
		}
	}
	return nil
}

func checkChunk(r io.Reader, codec format.CompressionCodec, limit int) error {
	br := bufio.NewReader(r)
	dec := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(br))
	var page bytes.Buffer
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return nil
		}
		var h format.PageHeader
		if err := dec.Decode(&h); err != nil {
			return fmt.Errorf("a page header is damaged: %w", err)
		}
		packed, unpacked := int(h.CompressedPageSize), int(h.UncompressedPageSize)
		if packed < 0 || packed > limit || unpacked < 0 || unpacked > limit {
			return fmt.Errorf("a page %w: %d bytes, %d packed, at most %d", lines.ErrTooLong, unpacked, packed, limit)
		}
		for _, n := range [...]int32{h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues} {
			if n < 0 || n > maxValues {
				return fmt.Errorf("a page %w: %d values, at most %d", lines.ErrTooLong, n, maxValues)
			}
		}
		// Copied, not allocated ahead: the header may claim more than there is.
		page.Reset()
		if _, err := io.CopyN(&page, br, int64(packed)); err != nil {
			return fmt.Errorf("a page is cut short: %w", err)
		}
		b := page.Bytes()
		if v2 := h.DataPageHeaderV2; v2.Valid {
			levels := int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
			if v2.V.RepetitionLevelsByteLength < 0 || v2.V.DefinitionLevelsByteLength < 0 || levels > len(b) {
				return errors.New("a page header is damaged: levels longer than the page")
			}
			b = b[levels:]
			if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
				continue
			}
		}
		if err := checkPacked(b, codec, limit); err != nil {
			return err
		}
	}
}

// checkPacked refuses packed bytes that unpack to more than limit.
func checkPacked(b []byte, codec format.CompressionCodec, limit int) error {
	var n uint64
	var err error
	switch codec {
	case format.Uncompressed:
		return nil
	case format.Snappy:
		var k int
		if n, k = binary.Uvarint(b); k <= 0 && len(b) > 0 {
			err = errors.New("a snappy page is damaged")
		}
	case format.Zstd:
		n, err = zstdBound(b)
	case format.Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			var k int64
			k, err = io.Copy(io.Discard, io.LimitReader(z, int64(limit)+1))
			n = uint64(k)
		}
	default:
		return fmt.Errorf("%w: compression %s is not read here: write the file with zstd, snappy or gzip", ErrFormat, codec)
	}
	if err != nil {
		return err
	}
	if n > uint64(limit) {
		return fmt.Errorf("a page %w: it unpacks to %d bytes or more, at most %d", lines.ErrTooLong, n, limit)
	}
	return nil
}

var errZstd = errors.New("a zstd page is damaged")

// zstdBound is an upper bound of what b unpacks to, from the headers of its
// frames and blocks alone: a block gives 128 KiB at most. See RFC 8878,
// sections 3.1.1 and 3.1.2.
func zstdBound(b []byte) (uint64, error) {
	const maxBlock = 128 << 10
	var total uint64
	for len(b) > 0 {
		if len(b) < 8 {
			return 0, errZstd
		}
		magic := binary.LittleEndian.Uint32(b)
		if magic&^0xF == 0x184D2A50 { // a skippable frame
			n := uint64(binary.LittleEndian.Uint32(b[4:]))
			if n > uint64(len(b)-8) {
				return 0, errZstd
			}
			b = b[8+n:]
			continue
		}
		if magic != 0xFD2FB528 {
			return 0, errZstd
		}
		desc := b[4]
		head := 5
		single := desc&0x20 != 0
		if !single {
			head++ // window descriptor
		}
		head += [...]int{0, 1, 2, 4}[desc&3] // dictionary id
		switch desc >> 6 {                   // frame content size
		case 0:
			if single {
				head++
			}
		case 1:
			head += 2
		case 2:
			head += 4
		case 3:
			head += 8
		}
		if len(b) < head {
			return 0, errZstd
		}
		b = b[head:]
		for last := false; !last; {
			if len(b) < 3 {
				return 0, errZstd
			}
			h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
			b = b[3:]
			last = h&1 != 0
			n := int(h >> 3)
			switch h >> 1 & 3 {
			case 0: // raw
				total += uint64(n)
			case 1: // one byte, repeated
				total += uint64(n)
				n = 1
			case 2:
				total += maxBlock
			default:
				return 0, errZstd
			}
			if n > len(b) {
				return 0, errZstd
			}
			b = b[n:]
		}
		if desc&4 != 0 { // checksum
			if len(b) < 4 {
				return 0, errZstd
			}
			b = b[4:]
		}
	}
	return total, nil
}
