package history

import (
	"fmt"
	"strings"
)

var lists = map[string][]string{
	"people": strings.Fields("Ada Agnes Alva Amir Anouk Aron Bela Bruno Carla Cem Clara Dario Dunja Edda Elif Emil Enzo Esra Fabio Femke " +
		"Finn Gesa Greta Hanna Hugo Ida Imre Ines Irma Ismail Ivo Jana Joris Juri Kaja Karim Lale Lars Lena Levi Lotte Luca Maja Malik Mara " +
		"Matti Mila Nadja Nino Noor Olga Orla Oskar Paula Pekka Ravi Rosa Runa Samir Selma Sina Sofie Stella Tamar Theo Tilda Uma Vera Wim Yara Zoe"),
	"cities":   strings.Fields("Antwerp Basel Bergen Bologna Bremen Brno Cork Dresden Ghent Graz Innsbruck Kassel Leiden Linz Lund Lyon Malmo Mainz Nantes Odense Porto Riga Tartu Trieste Turku Utrecht"),
	"towns":    strings.Fields("Altena Brig Celle Delden Erding Flims Gorinchem Husum Itzehoe Jever Kamenz Lindau Moers Nidda Olten Plau Rheine Soest Thun Uelzen Verden Wismar Zeist"),
	"projects": strings.Fields("Lantern Harbour Meadow Quill Almanac Orchard Compass Thimble Juniper Kestrel Loom Marble Nettle Pebble Saffron Tandem Violet Willow"),
	"teams": {"the print shop", "the library", "the garden team", "the school", "the front desk", "the music club", "the workshop", "the design group",
		"the kitchen", "the translators", "the museum", "the radio people"},
	"events": {"open day", "summer party", "book fair", "autumn market", "anniversary dinner", "concert evening", "neighbours' lunch", "poster show", "winter fair"},
	"names":  strings.Fields("Lucerna Beacon Spica Tally Mosaic Ferry Pocket Almond Cairn Swift Marl Dovetail Rowan Plover Trellis Candle"),
	"words":  strings.Fields("lantern ferry ladder morning basket window kettle harbour chalk ribbon bridge postcard cellar whistle saddle button thimble orchard"),
	"books": {"The Ferryman's Year", "Seven Kinds of Snow", "A House by the Canal", "The Map Maker's Daughter", "Letters to a Gardener", "Night Trains",
		"The Salt Road", "What the Baker Knew", "Small Islands", "A Winter of Birds"},
	"days":   strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday"),
	"months": strings.Fields("January February March April May June July August September October November December"),
}

// table is the output of some program, as people paste it.
func (g *generator) table(name string) (string, error) {
	var b strings.Builder
	row := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	from := func(lo, hi int) int { return lo + g.n(hi-lo+1) }
	switch name {
	case "visitors":
		row("day   am   pm")
		for _, d := range strings.Fields("Mon Tue Wed Thu Fri Sat") {
			row("%s  %3d  %3d", d, from(60, 180), from(70, 240))
		}
	case "timing":
		for _, s := range []string{"list", "read", "convert", "merge", "write"}[:from(3, 5)] {
			row("[%02d:%02d] %-8s %5d.%d s  ok", from(1, 4), from(0, 59), s, from(1, 900), g.n(10))
		}
	case "stock":
		for _, s := range []string{"paper A4", "envelopes small", "envelopes large", "markers", "tape", "labels", "staples"}[:from(4, 7)] {
			row("%-16s %3d", s, from(1, 60))
		}
	case "survey":
		for _, s := range []string{"friends", "website", "poster", "radio", "walked past"} {
			row("%-12s %d %%", s, from(3, 48))
		}
	case "sensor":
		t := from(4, 11)
		for h := 0; h < 24; h += 4 {
			row("%02d:00  %d.%d C  %d %%", h, t+[]int{0, -1, 4, 11, 9, 3}[h/4], g.n(10), from(48, 90))
		}
	case "quarters":
		for q := 1; q <= 4; q++ {
			row("Q%d  %d  %d", q, from(1200, 4800), from(10, 60))
		}
	case "latency":
		row("page      median   p90     size")
		for _, s := range []string{"start", "map", "programme", "contact"} {
			row("%-9s %4d ms %5d ms %4d kB", s, from(90, 400), from(700, 3900), from(120, 4000))
		}
	case "cities":
		for i, n := 0, from(4, 6); i < n; i++ {
			row("%-10s %d", lists["cities"][(g.n(4)+i*4)%len(lists["cities"])], from(90-12*i, 110-12*i))
		}
	case "sizes":
		for _, s := range []string{"photos", "videos", "texts", "drawings", "music"} {
			row("%6d MB  %s", from(40, 90000), s)
		}
	case "cellar":
		row("%-24s %6s %6s", "what", "count", "good")
		for _, s := range []string{"folding tables", "benches", "lanterns", "wooden crates", "lamps", "enamel cups", "plates", "easels", "tarpaulin", "music stands", "flower pots", "picture frames", "ropes"} {
			if k := from(2, 60); g.n(4) > 0 {
				row("%-24s %6d %6d", s, k, from(1, k))
			}
		}
	case "timetable":
		rooms := []string{"hall", "garden", "workshop", "café", "back room"}
		what := []string{"drums", "reading corner", "chairs and how they are made", "choir", "tour of the roof", "printing your own card", "soup", "swap of seeds", "puppet play", "the clock explained", "songs", "drawing"}
		for h := 10; h < 17; h++ {
			row("%02d:%02d  %-10s %-30s %s", h, 15*g.n(4), rooms[g.n(len(rooms))], what[(h*5+g.n(3))%len(what)], g.always["p"+fmt.Sprint(1+g.n(5))])
		}
	case "week":
		row("day  hour  median   p95   visits")
		for _, d := range strings.Fields("Mon Tue Wed Thu Fri Sat Sun") {
			for _, h := range []int{9, 20} {
				row("%s   %02d  %4d ms  %5d ms  %5d", d, h, from(90, 240), from(400, 3200), from(60, 900))
			}
		}
	default:
		return "", fmt.Errorf("there is no table %s", name)
	}
	return strings.TrimRight(b.String(), "\n"), nil
}
