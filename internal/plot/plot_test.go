package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wellFormed reads the whole document and returns its text.
func wellFormed(t *testing.T, svg []byte) string {
	t.Helper()
	var text strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		switch tok := tok.(type) {
		case xml.CharData:
			text.Write(tok)
		case xml.StartElement:
			if tok.Name.Local == "script" {
				t.Fatal("a script got in")
			}
		}
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	hostile := "</text><script>alert(1)</script>\x00\x1b[31m\u202eevil & \"quoted\"\xff"
	for name, c := range map[string]Chart{
		"empty":     {},
		"one point": {Series: []Series{{Name: "a", X: []float64{1}, Y: []float64{1}, Both: true}}},
		"roc":       ROC("set", []float64{0, 0.1, 1}, []float64{0, 0.8, 1}, &Operating{0.05, 0.7}),
		"roc, none": ROC("set", nil, nil, &Operating{math.NaN(), 0}),
		"boxes": {X: Axis{Ticks: []string{"a", hostile, "one"}}, Boxes: []Box{
			{X: 0, Values: []float64{0, 0.1, 0.2, 5}, Color: Blue}, {X: 1}, {X: 2, Values: []float64{1}}}},
		"meaning":     Meaning("set", []float64{0, 0.5, 1}, []float64{0.1, 0.2, 0.8}, []float64{0.2, 0.5, 0.9}),
		"reliability": Reliability("set", []float64{0.05, 0.9}, []float64{0.04, 0.8}),
		"scores": Scores(Timeline{Title: hostile, Tools: []string{"read", "", hostile}, Hazard: []float64{0, 0.1, 0.9},
			Risk: []float64{0.1, 0.2, 0.95}, Block: math.Inf(1), Hold: 0.6, FirstHazard: 2}),
	} {
		svg, err := c.SVG()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := wellFormed(t, svg)
		if !bytes.HasPrefix(svg, []byte("<svg")) || bytes.Contains(svg, []byte("#010101")) || !bytes.Contains(svg, []byte("currentColor")) {
			t.Errorf("%s: not an inline element in the page's ink: %.120s", name, svg)
		}
		if strings.ContainsAny(text, "\x00\x1b\u202e") {
			t.Errorf("%s: control characters in %q", name, text)
		}
		again, err := c.SVG()
		if err != nil || !bytes.Equal(svg, again) {
			t.Errorf("%s: drawn twice, not the same bytes", name)
		}
	}
}

func TestChartRefuses(t *testing.T) {
	for name, s := range map[string]Series{
		"ragged":   {X: []float64{1, 2}, Y: []float64{1}},
		"NaN":      {X: []float64{1}, Y: []float64{math.NaN()}},
		"huge":     {X: []float64{1e308}, Y: []float64{1}},
		"infinite": {X: []float64{1}, Y: []float64{math.Inf(1)}, Dots: true},
	} {
		if _, err := (Chart{Series: []Series{s}}).SVG(); !errors.Is(err, ErrData) {
			t.Errorf("%s: error %v, want ErrData", name, err)
		}
	}
}

func TestScoresShowsThresholds(t *testing.T) {
	tl := Timeline{Tools: []string{"a", "b"}, Hazard: []float64{0, 1}, Risk: []float64{0, 1}, Block: 0.9, Hold: 0.5, FirstHazard: -1}
	svg, err := Scores(tl).SVG()
	if err != nil {
		t.Fatal(err)
	}
	text := wellFormed(t, svg)
	for _, want := range []string{"HOLD from", "BLOCK from", "0 a", "1 b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if strings.Contains(text, "first hazard") {
		t.Error("a hazard is drawn where there is none")
	}
}

// labelAt returns where the SVG draws a text: the coordinates grow to the right
// and upwards.
func labelAt(t *testing.T, svg []byte, label string) (x, y float64) {
	t.Helper()
	m := regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)"[^>]*>` + regexp.QuoteMeta(label) + `</text>`).FindSubmatch(svg)
	if m == nil {
		t.Fatalf("%q is not drawn", label)
	}
	var err [2]error
	x, err[0] = strconv.ParseFloat(string(m[1]), 64)
	y, err[1] = strconv.ParseFloat(string(m[2]), 64)
	if errors.Join(err[:]...) != nil {
		t.Fatal(err)
	}
	return x, -y // the text is turned upright by a transform
}

// The labels of the thresholds do not cover each other, however close these are.
func TestThresholdLabels(t *testing.T) {
	for _, c := range [][2]float64{{0.9, 0.9}, {0.916, 0.957}, {0.957, 0.916}, {0.02, 0.05}, {0.05, 0.02}, {0.02, 0.02}, {0.3, 0.46}, {0, 1}} {
		tl := Timeline{Tools: []string{"a", "b"}, Hazard: []float64{0, 1}, Risk: []float64{0, 1}, Hold: c[0], Block: c[1], FirstHazard: -1}
		svg, err := Scores(tl).SVG()
		if err != nil {
			t.Fatal(err)
		}
		hx, hy := labelAt(t, svg, "HOLD from here (S)")
		bx, by := labelAt(t, svg, "BLOCK from here (p)")
		if math.Abs(hy-by) < 12 && math.Abs(hx-bx) < 110 {
			t.Errorf("HOLD at %v and BLOCK at %v: labels at (%v, %v) and (%v, %v)", c[0], c[1], hx, hy, bx, by)
		}
	}
}

// The legend of a loss chart stands right of the last point of every curve.
func TestLegendOutside(t *testing.T) {
	charts, err := Loss(strings.NewReader(`{"stage":1,"step":0,"terms":{"total":1}}` + "\n" + `{"stage":1,"step":100,"terms":{"total":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	svg, err := charts[0].SVG()
	if err != nil {
		t.Fatal(err)
	}
	end, _ := labelAt(t, svg, "100")
	if x, _ := labelAt(t, svg, "total"); x < end+10 {
		t.Errorf("the legend starts at %v, the axis ends at %v", x, end)
	}
}

func TestManyNames(t *testing.T) {
	ticks := names(make([]string, 1000)).Ticks(0, 999)
	if len(ticks) > maxNames || ticks[0].Value != 0 {
		t.Errorf("%d ticks", len(ticks))
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []float64
	}{
		{0, 1, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0, 1000, []float64{0, 200, 400, 600, 800, 1000}},
		{-3, 1, []float64{-3, -2, -1, 0, 1}},
		{0, 4.5, []float64{0, 1, 2, 3, 4}},
		{1, 1, nil},
	} {
		got := round(c.lo, c.hi)
		if len(got) != len(c.want) {
			t.Errorf("round(%v, %v) = %v, want %v", c.lo, c.hi, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9*(c.hi-c.lo) {
				t.Errorf("round(%v, %v) = %v, want %v", c.lo, c.hi, got, c.want)
			}
		}
	}
}

func TestLoss(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 1000; i++ {
		fmt.Fprintf(&b, `{"stage":1,"step":%d,"terms":{"loss":%g,"kl":2,"off":0}}`+"\n", i, 1/float64(i))
	}
	b.WriteString(`{"stage":2,"step":1,"terms":{"loss":0.5,"broken":null}}` + "\n" + `{"stage":2,"step":1,"validation":{"auroc":0.9}}` + "\n")
	charts, err := Loss(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(charts) != 2 || len(charts[0].Series) != 2 || len(charts[1].Series) != 1 {
		t.Fatalf("%+v", charts)
	}
	kl, loss := charts[0].Series[0], charts[0].Series[1]
	if kl.Name != "kl" || loss.Name != "loss" || len(loss.X) != maxLossPoints || kl.Y[7] != 2 {
		t.Errorf("series %q and %q of %d points", kl.Name, loss.Name, len(loss.X))
	}
	// The mean of steps 1 to 3.
	if loss.X[0] != 2 || math.Abs(loss.Y[0]-(1+1./2+1./3)/3) > 1e-5 {
		t.Errorf("first point %v, %v", loss.X[0], loss.Y[0])
	}
	if _, err := charts[0].SVG(); err != nil {
		t.Error(err)
	}
	if _, err := Loss(strings.NewReader("{}\n{broken\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}

// FuzzLoss: any file gives charts that can be drawn, or an error.
func FuzzLoss(f *testing.F) {
	f.Add(`{"stage":1,"step":1,"terms":{"loss":0.5}}`)
	f.Add(`{"stage":1,"step":1,"terms":{"a":1e15}}` + "\n" + `{"stage":1,"step":2,"terms":{"a":1000000000000001}}`)
	f.Add(`{"stage":1,"step":1e99,"terms":{"a":-1e99}}` + "\n" + `{"stage":1,"step":-1e99,"terms":{"a":1e99}}`)
	f.Add(`{"stage":-1,"step":1e308,"terms":{"<b>":-1e308}}` + "\n" + `{"stage":-1,"step":-1e308,"terms":{"<b>":1e308}}`)
	f.Fuzz(func(t *testing.T, s string) {
		charts, err := Loss(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, c := range charts {
			if svg, err := c.SVG(); err == nil {
				wellFormed(t, svg)
			}
		}
	})
}
