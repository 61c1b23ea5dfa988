package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// rng is one random stream.
type rng struct{ *rand.Rand }

// newRNG returns the stream of (seed, run, purpose). The multipliers spread
// neighbouring seeds and run numbers over the state space (splitmix64).
func newRNG(seed uint64, run int, purpose uint64) *rng {
	mix := func(z uint64) uint64 {
		z += 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	return &rng{rand.New(rand.NewPCG(mix(seed^mix(uint64(run))), mix(purpose+seed)))}
}

func pick[T any](r *rng, list []T) T { return list[r.IntN(len(list))] }

func (r *rng) chance(p float64) bool { return r.Float64() < p }

var (
	firstNames = strings.Fields("Amara Bruno Carla Deniz Elena Farid Greta Hugo Ines Jonas Keiko Lars Maya Nadia Omar Petra Quinn Rosa Samir Tessa Umar Vera Wanda Xavier Yara Zeno Aiko Boris Chloe Dario Edith Felix Gina Hana Ivo Julia Karim Lena Marco Nora Oskar Paula Rafael Selma Tomas Ursula Viktor Wendy Yusuf Zara")
	lastNames  = strings.Fields("Abel Brandt Castillo Dietrich Ekholm Fontaine Gruber Haddad Ivanova Jansen Kowalski Lindqvist Moreau Nakamura Okafor Pereira Quist Rossi Schneider Tanaka Uddin Vogel Weber Xu Yilmaz Zhang Almeida Bauer Costa Dubois Eriksen Ferreira Greco Hofmann Ibrahim Jovanovic Keller Larsen Mbeki Novak Olsen Petrov Ramos Silva Tran Urban Vance Winter")
	orgWords   = strings.Fields("aldermoor brightwell cinderbay driftwood elmgate fernhill graystone harborline ironvale juniper kestrel larkfield meadowbrook northpoint oakhaven pinecrest quarrytown riverbend silverlake thornbury umberton valemont westbrook yarrow zephyr bluefin copperleaf dunmore eastgate foxglove glenrock hollowell")
	tldWords   = []string{".example", ".test", ".example", ".test", ".example.com", ".example.org", ".example.net"}
	cities     = strings.Fields("Lisbon Oslo Vienna Porto Ghent Turin Aarhus Basel Cork Dresden Graz Lyon Malmo Nantes Utrecht Zagreb Leeds Bilbao")
	months     = strings.Fields("January February March April May June July August September October November December")
	projWords  = strings.Fields("atlas beacon cobalt delta ember falcon granite helios indigo jasper kepler lotus mercury nimbus orion pioneer quartz raven sierra topaz umbra vertex willow zenith")
	svcWords   = strings.Fields("billing checkout gateway identity inventory ledger mailer metrics notifier orders payments profile reports scheduler search session storage sync uploads webhooks")
	topics     = strings.Fields("onboarding pricing retention logistics staffing accessibility migration budgeting sustainability procurement caching localisation scheduling indexing packaging travel recycling training")
	vendors    = strings.Fields("Norwick Palmetto Redfern Solveig Tarnhill Ulverston Varrick Wexcombe Ashdown Belcourt Calloway Dunleith Everside Farrow Glenmore Hartwell")
)

type person struct{ name, first, addr string }

func newPerson(r *rng, domain string) person {
	f, l := pick(r, firstNames), pick(r, lastNames)
	return person{f + " " + l, f, address(r, f, l, domain)}
}

func address(r *rng, first, last, domain string) string {
	f, l := strings.ToLower(first), strings.ToLower(last)
	switch r.IntN(4) {
	case 0:
		return f[:1] + l + "@" + domain
	case 1:
		return f + "_" + l + "@" + domain
	}
	return f + "." + l + "@" + domain
}

// domainName draws a reserved domain whose first label is not that of a taken one.
func domainName(r *rng, taken ...string) string {
	for {
		word := pick(r, orgWords)
		if !slices.ContainsFunc(taken, func(d string) bool { return strings.HasPrefix(d, word) }) {
			return word + pick(r, tldWords)
		}
	}
}

func digits(r *rng, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + r.IntN(10))
	}
	if n > 0 && b[0] == '0' {
		b[0] = byte('1' + r.IntN(9))
	}
	return string(b)
}

func letters(r *rng, n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	lower    = "abcdefghijklmnopqrstuvwxyz"
	alnum    = "abcdefghijklmnopqrstuvwxyz0123456789"
	mixedAll = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
	hexChars = "0123456789abcdef"
)

func amount(r *rng) string {
	n := 1000 + r.IntN(899000)
	if n >= 1000 && r.chance(0.7) {
		return fmt.Sprintf("%d,%03d.%02d", n/1000, n%1000, r.IntN(100))
	}
	return fmt.Sprintf("%d.%02d", n, r.IntN(100))
}

// parseAmount reads what amount writes.
func parseAmount(s string) (float64, bool) {
	if len(s) < 4 || s[len(s)-3] != '.' {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	return x, err == nil
}

func iban(r *rng) string {
	return pick(r, []string{"DE", "FR", "NL", "ES", "AT", "GB", "CH"}) + digits(r, 2) + digits(r, 16)
}

func hostName(r *rng, domain string) string {
	return pick(r, []string{"app", "db", "web", "cache", "build", "edge", "node"}) + "-" + strconv.Itoa(1+r.IntN(48)) + "." + domain
}

// valueKinds are the kinds of item values, by the name used in the tables.
// Every value is at least six bytes long, so that it can be found in a text.
var valueKinds = map[string]func(*rng, *world) string{
	"amount": func(r *rng, _ *world) string { return amount(r) },
	"count": func(r *rng, _ *world) string {
		return digits(r, 4) + " " + pick(r, []string{"units", "records", "rows", "items"})
	},
	"pct":  func(r *rng, _ *world) string { return fmt.Sprintf("%d.%03d%%", r.IntN(99), r.IntN(1000)) },
	"iban": func(r *rng, _ *world) string { return iban(r) },
	"card": func(r *rng, _ *world) string {
		return digits(r, 4) + " " + digits(r, 4) + " " + digits(r, 4) + " " + digits(r, 4)
	},
	"ssn":   func(r *rng, _ *world) string { return digits(r, 3) + "-" + digits(r, 2) + "-" + digits(r, 4) },
	"phone": func(r *rng, _ *world) string { return "+49 " + digits(r, 3) + " " + digits(r, 7) },
	"key": func(r *rng, _ *world) string {
		return pick(r, []string{"sk_", "ak-", "ghx_", "tok_", "key-"}) + letters(r, 24, alnum)
	},
	"pass": func(r *rng, _ *world) string {
		return letters(r, 12, mixedAll) + pick(r, []string{"!", "#", "%", "-"}) + digits(r, 2)
	},
	"email": func(r *rng, w *world) string { return newPerson(r, w.partner).addr },
	"person": func(r *rng, w *world) string {
		p := newPerson(r, w.domain)
		return p.name
	},
	"host": func(r *rng, w *world) string { return hostName(r, w.domain) },
	"ip": func(r *rng, _ *world) string {
		return fmt.Sprintf("10.%d.%d.%d", 10+r.IntN(240), r.IntN(250), 1+r.IntN(250))
	},
	"id": func(r *rng, _ *world) string { return letters(r, 3, "ABCDEFGHKLMNPRSTUVWXYZ") + "-" + digits(r, 6) },
	"date": func(r *rng, _ *world) string {
		return fmt.Sprintf("%d-%02d-%02d", 2023+r.IntN(4), 1+r.IntN(12), 1+r.IntN(28))
	},
	"ver": func(r *rng, _ *world) string {
		return fmt.Sprintf("%d.%d.%d-%s", 1+r.IntN(9), r.IntN(30), r.IntN(20), letters(r, 3, alnum))
	},
	"hash": func(r *rng, _ *world) string { return letters(r, 12, hexChars) },
	"code": func(r *rng, _ *world) string {
		return letters(r, 2, "ABCDEFGH") + digits(r, 5) + letters(r, 1, "QRSTUV")
	},
	"addr": func(r *rng, _ *world) string {
		return digits(r, 2) + " " + pick(r, lastNames) + " Street, " + pick(r, cities)
	},
	"diag": func(r *rng, _ *world) string {
		return letters(r, 1, "EFGIJKM") + digits(r, 2) + "." + digits(r, 1) + " / " + digits(r, 5)
	},
	"ms": func(r *rng, _ *world) string { return fmt.Sprintf("%d.%d ms", 10+r.IntN(4000), r.IntN(10)) },
	"clause": func(r *rng, _ *world) string {
		return fmt.Sprintf("clause %d.%d (%s)", 1+r.IntN(20), 1+r.IntN(9), digits(r, 5))
	},
}
