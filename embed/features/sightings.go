package features

// sightings says where tokens appeared first and in which places exact values
// stand. It is one map because nearly every value is a token as well, and an entry
// has room for both.
type sightings struct {
	at     map[token]sighting
	held   [originCount]int // tokens with an origin, by class
	tokens int              // tokens with an origin
	values int              // values with a place
}

type sighting struct {
	from  uint8 // 1 + origin, 0 if it has none
	place place // 0 if it has none
}

// origin returns the class of tk, fromNowhere if it was never seen.
func (s *sightings) origin(tk token) origin {
	if from := s.at[tk].from; from > 0 {
		return origin(from - 1)
	}
	return fromNowhere
}

func (s *sightings) setOrigin(tk token, o origin) {
	x := s.at[tk]
	if x.from > 0 {
		s.held[x.from-1]--
		s.tokens--
	}
	x.from = 1 + uint8(o)
	s.held[o]++
	s.tokens++
	s.at[tk] = x
}

func (s *sightings) forgetOrigin(tk token) {
	x := s.at[tk]
	if x.from == 0 {
		return
	}
	s.held[x.from-1]--
	s.tokens--
	x.from = 0
	s.set(tk, x)
}

// place returns the places of a value, 0 if it was never seen.
func (s *sightings) place(v token) place { return s.at[v].place }

// addPlace adds the places p, at least one, to those of a value.
func (s *sightings) addPlace(v token, p place) {
	x := s.at[v]
	if x.place == 0 {
		s.values++
	}
	x.place |= p
	s.at[v] = x
}

func (s *sightings) forgetPlace(v token) {
	x := s.at[v]
	if x.place == 0 {
		return
	}
	s.values--
	x.place = 0
	s.set(v, x)
}

func (s *sightings) set(tk token, x sighting) {
	if x == (sighting{}) {
		delete(s.at, tk)
	} else {
		s.at[tk] = x
	}
}
