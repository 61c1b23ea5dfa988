package cache

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/dreamguard/dreamguard/embed"
)

// Info describes a cache folder.
type Info struct {
	Encoder  embed.ID      `json:"encoder"`
	Texts    int           `json:"texts"`   // different texts in sound segments
	Vectors  int           `json:"vectors"` // in sound segments, repetitions included
	Bytes    int64         `json:"bytes"`   // of all segments
	Segments []SegmentInfo `json:"segments"`
}

// SegmentInfo describes one segment file.
type SegmentInfo struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Vectors int    `json:"vectors"`
	Problem string `json:"problem,omitempty"` // why it cannot be used
}

// Inspect reads a cache folder without changing it. Unlike [Open] it goes on
// past a damaged segment and states what is wrong with it.
func Inspect(dir string) (Info, error) {
	h, err := readHeader(filepath.Join(dir, headerName))
	if err != nil {
		return Info{}, err
	}
	names, err := segmentNames(dir)
	if err != nil {
		return Info{}, err
	}
	info := Info{Encoder: h.Encoder, Segments: []SegmentInfo{}}
	var texts []Key
	for _, name := range names {
		path := filepath.Join(dir, name)
		si := SegmentInfo{Name: name}
		if st, err := os.Stat(path); err == nil {
			si.Bytes = st.Size()
		}
		s, err := openSegment(path, h.Encoder.Dims)
		if err != nil {
			si.Problem = err.Error()
		} else {
			si.Vectors = s.rows()
			for row := range s.rows() {
				texts = append(texts, s.key(row))
			}
			if err := s.close(); err != nil {
				return Info{}, err
			}
		}
		info.Vectors += si.Vectors
		info.Bytes += si.Bytes
		info.Segments = append(info.Segments, si)
	}
	slices.SortFunc(texts, func(a, b Key) int { return slices.Compare(a[:], b[:]) })
	info.Texts = len(slices.Compact(texts))
	return info, nil
}
