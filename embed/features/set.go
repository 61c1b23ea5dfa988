package features

// tokenSet is a small set of tokens with a weight and an origin each, kept in
// order of insertion so that sums do not depend on map order.
type tokenSet struct {
	index map[token]int
	list  []setItem
}

type setItem struct {
	t      token
	weight float64
	from   origin
}

// maxSet bounds the distinct tokens of one call that are looked at.
const maxSet = 1024

func (s *tokenSet) reset() {
	clear(s.index)
	s.list = s.list[:0]
}

func (s *tokenSet) add(t token, w float64, o origin) {
	if s.index == nil {
		s.index = map[token]int{}
	}
	if _, ok := s.index[t]; ok || len(s.list) >= maxSet {
		return
	}
	s.index[t] = len(s.list)
	s.list = append(s.list, setItem{t, w, o})
}

func (s *tokenSet) has(t token) bool {
	_, ok := s.index[t]
	return ok
}

// mass returns the summed weight by origin and in all.
func (s *tokenSet) mass() (by [originCount]float64, total float64) {
	for i := range s.list {
		by[s.list[i].from] += s.list[i].weight
		total += s.list[i].weight
	}
	return by, total
}
