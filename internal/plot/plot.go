// Package plot draws the few charts of DreamGuard as SVG: small, without
// scripts or embedded fonts, in the ink of the surrounding text (currentColor),
// so that they read on light and dark pages alike.
//
//	svg, err := plot.Chart{
//		X: plot.Axis{Label: "step"}, Y: plot.Axis{Label: "score", Max: 1},
//		Series: []plot.Series{{Name: "S", X: xs, Y: ys}},
//	}.SVG()
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Color indexes a palette that is told apart with impaired colour vision
// (Okabe and Ito), or is the ink of the page.
type Color int

// The colours.
const (
	Ink Color = iota
	Blue
	Orange
	Green
	Red
	Grey
)

// inkRGB stands for currentColor until the SVG is written: black itself is a
// default that the renderer leaves out.
var inkRGB = color.RGBA{1, 1, 1, 255}

func (c Color) rgb() color.Color {
	switch c {
	case Blue:
		return color.RGBA{0x2b, 0x8c, 0xd6, 255}
	case Orange:
		return color.RGBA{0xe6, 0x9f, 0x00, 255}
	case Green:
		return color.RGBA{0x00, 0x9e, 0x73, 255}
	case Red:
		return color.RGBA{0xd5, 0x5e, 0x00, 255}
	case Grey:
		return color.RGBA{0x8a, 0x8a, 0x8a, 255}
	}
	return inkRGB
}

// Series is one line, or with Dots only points.
type Series struct {
	Name   string // in the legend; "" leaves it out
	X, Y   []float64
	Color  Color
	Dashed bool
	Dots   bool // points instead of a line
	Both   bool // a line with points
	Label  bool // the name stands above the last point instead of in the legend
	Below  bool // with Label: below the last point
	First  bool // with Label: at the first point
}

// Box is one box plot: a box from the lower to the upper quartile with a line at
// the median, whiskers to the last value within 1.5 times its height, and points
// beyond.
type Box struct {
	X      float64
	Values []float64
	Color  Color
}

// Axis is one axis. Min and Max both 0 take the range of the data.
type Axis struct {
	Label    string
	Min, Max float64
	Ticks    []string  // names of positions 0, 1, ...; nil for numbers
	At       []float64 // numbers to show; nil chooses them
}

// Chart is a chart. Zero sizes mean 420 by 280 points.
type Chart struct {
	Title         string
	X, Y          Axis
	Series        []Series
	Boxes         []Box
	Width, Height float64
	LegendLeft    bool // legend at the left instead of the right
	LegendBottom  bool // legend at the bottom instead of the top
	LegendOutside bool // legend right of the chart, where no curve can be
}

// maxValue bounds coordinates, so that ranges and their ticks stay finite.
const maxValue = 1e100

// ErrData is returned for a series that cannot be drawn.
var ErrData = errors.New("plot: cannot draw")

// SVG renders the chart as one <svg> element that may stand in an HTML page or
// alone in a file. Text is escaped and stripped of control characters.
func (c Chart) SVG() ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = clean(c.Title, 120)
	p.Title.TextStyle.Color = inkRGB
	p.Title.TextStyle.Font = sans(11)
	p.Title.Padding = 4
	p.Legend.TextStyle.Color = inkRGB
	p.Legend.TextStyle.Font = sans(9)
	p.Legend.Top, p.Legend.Left = !c.LegendBottom, c.LegendLeft
	p.Legend.Padding = 2
	for _, a := range []struct {
		axis *plot.Axis
		from Axis
	}{{&p.X, c.X}, {&p.Y, c.Y}} {
		a.axis.Label.Text = clean(a.from.Label, 80)
		a.axis.Label.TextStyle.Color = inkRGB
		a.axis.Label.TextStyle.Font = sans(10)
		a.axis.Color, a.axis.Tick.Color, a.axis.Tick.Label.Color = inkRGB, inkRGB, inkRGB
		a.axis.Tick.Label.Font = sans(9)
	}
	grid := plotter.NewGrid()
	faint := draw.LineStyle{Color: color.RGBA{0x8a, 0x8a, 0x8a, 255}, Width: vg.Points(0.25)}
	grid.Vertical, grid.Horizontal = faint, faint
	if c.X.Ticks != nil {
		grid.Vertical.Width = 0
	}
	p.Add(grid)
	for i, s := range c.Series {
		if err := add(p, s); err != nil {
			return nil, fmt.Errorf("%w series %d %q: %w", ErrData, i, s.Name, err)
		}
	}
	for i, b := range c.Boxes {
		if err := addBox(p, b); err != nil {
			return nil, fmt.Errorf("%w box %d: %w", ErrData, i, err)
		}
	}
	if c.X.Ticks != nil {
		p.X.Tick.Marker = names(c.X.Ticks)
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
	for _, a := range []struct {
		axis *plot.Axis
		at   []float64
	}{{&p.X, c.X.At}, {&p.Y, c.Y.At}} {
		if _, named := a.axis.Tick.Marker.(names); !named {
			a.axis.Tick.Marker = numbers(a.at)
		}
	}
	// The range is always set: with no data, or one value, it would be infinite or empty.
	p.X.Min, p.X.Max = limits(c.X, p.X.Min, p.X.Max)
	p.Y.Min, p.Y.Max = limits(c.Y, p.Y.Min, p.Y.Max)

	w, h := c.Width, c.Height
	if w <= 0 {
		w = 420
	}
	if h <= 0 {
		h = 280
	}
	canvas := vgsvg.New(vg.Points(w), vg.Points(h))
	area := draw.Crop(draw.New(canvas), 0, -vg.Points(10), 0, -vg.Points(6)) // the last tick labels reach beyond the axes
	if c.LegendOutside {
		legend := p.Legend
		p.Legend = plot.NewLegend()
		legend.Left = true
		legend.YOffs = -vg.Points(14) // below a title
		// A page's own font is wider than the one that is measured here.
		width := legend.Rectangle(area).Size().X*1.15 + vg.Points(6)
		legend.Draw(draw.Crop(area, area.Size().X-width, 0, 0, 0))
		area = draw.Crop(area, 0, -width-vg.Points(8), 0, 0)
	}
	p.Draw(area)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	return inline(b.Bytes(), clean(c.Title, 120)), nil
}

func add(p *plot.Plot, s Series) error {
	if len(s.X) != len(s.Y) {
		return fmt.Errorf("%d x and %d y values", len(s.X), len(s.Y))
	}
	if len(s.X) == 0 {
		return nil
	}
	pts := make(plotter.XYs, len(s.X))
	for i := range pts {
		if math.Abs(s.X[i]) > maxValue || math.Abs(s.Y[i]) > maxValue {
			return fmt.Errorf("point %d is (%g, %g): want values up to %g", i, s.X[i], s.Y[i], float64(maxValue))
		}
		pts[i] = plotter.XY{X: s.X[i], Y: s.Y[i]}
	}
	var thumbs []plot.Thumbnailer
	if !s.Dots {
		line, err := plotter.NewLine(pts) // refuses NaN and infinities
		if err != nil {
			return err
		}
		line.Color, line.Width = s.Color.rgb(), vg.Points(1.3)
		if s.Dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
		thumbs = append(thumbs, line)
	}
	if s.Dots || s.Both {
		dots, err := plotter.NewScatter(pts)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: s.Color.rgb(), Radius: vg.Points(2.6), Shape: draw.CircleGlyph{}}
		p.Add(dots)
		thumbs = append(thumbs, dots)
	}
	switch {
	case s.Name == "":
	case s.Label:
		where := pts[len(pts)-1:]
		if s.First {
			where = pts[:1]
		}
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: where, Labels: []string{clean(s.Name, 60)}})
		if err != nil {
			return err
		}
		labels.TextStyle[0].Color, labels.TextStyle[0].Font = inkRGB, sans(9)
		labels.Offset = vg.Point{X: -vg.Points(6), Y: vg.Points(2)}
		labels.TextStyle[0].XAlign, labels.TextStyle[0].YAlign = draw.XRight, draw.YBottom
		if s.First {
			labels.Offset.X, labels.TextStyle[0].XAlign = -labels.Offset.X, draw.XLeft
		}
		if s.Below {
			labels.Offset.Y, labels.TextStyle[0].YAlign = -labels.Offset.Y, draw.YTop
		}
		p.Add(labels)
	default:
		p.Legend.Add(clean(s.Name, 60), thumbs...)
	}
	return nil
}

func addBox(p *plot.Plot, b Box) error {
	if len(b.Values) == 0 {
		return nil
	}
	for i, v := range b.Values {
		if !(math.Abs(v) <= maxValue) {
			return fmt.Errorf("value %d is %g: want a number up to %g", i, v, float64(maxValue))
		}
	}
	if !(math.Abs(b.X) <= maxValue) {
		return fmt.Errorf("x is %g: want a number up to %g", b.X, float64(maxValue))
	}
	box, err := plotter.NewBoxPlot(vg.Points(16), b.X, plotter.Values(b.Values))
	if err != nil {
		return err
	}
	ink := b.Color.rgb()
	box.BoxStyle = draw.LineStyle{Color: ink, Width: vg.Points(1.3)}
	box.MedianStyle = draw.LineStyle{Color: ink, Width: vg.Points(2.4)}
	box.WhiskerStyle = draw.LineStyle{Color: ink, Width: vg.Points(1)}
	box.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: vg.Points(1.5), Shape: draw.CircleGlyph{}}
	p.Add(box)
	return nil
}

// limits returns a range that is finite and not empty.
func limits(a Axis, lo, hi float64) (float64, float64) {
	if a.Min != 0 || a.Max != 0 {
		return a.Min, a.Max
	}
	if a.Ticks != nil {
		return -0.5, max(float64(len(a.Ticks)), 1) - 0.5
	}
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return 0, 1
	}
	if hi-lo <= 1e-12*max(math.Abs(lo), math.Abs(hi)) {
		return lo - 0.5, hi + 0.5
	}
	return lo, hi
}

// numbers are the ticks of a numeric axis: these, or if there are none a few
// round ones. The library's own search for round numbers does not end on
// extreme ranges.
type numbers []float64

func (n numbers) Ticks(lo, hi float64) []plot.Tick {
	at := []float64(n)
	if at == nil {
		at = round(lo, hi)
	}
	var out []plot.Tick
	for _, v := range at {
		out = append(out, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)})
	}
	return out
}

// round returns at most eleven multiples of 1, 2 or 5 times a power of ten.
func round(lo, hi float64) []float64 {
	width := hi - lo
	if !(width > 0) || math.IsInf(width, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(width/4)))
	for _, m := range []float64{5, 2} {
		if width/(m*step) >= 4 {
			step *= m
			break
		}
	}
	var out []float64
	for k := math.Ceil(lo / step); k*step <= hi && len(out) < 11; k++ {
		out = append(out, k*step)
	}
	return out
}

// maxNames bounds how many names one axis shows.
const maxNames = 24

// names places texts at 0, 1, ..., every k-th if there are many.
type names []string

func (n names) Ticks(_, _ float64) []plot.Tick {
	every := (len(n) + maxNames - 1) / maxNames
	var out []plot.Tick
	for i := 0; i < len(n); i += max(every, 1) {
		out = append(out, plot.Tick{Value: float64(i), Label: clean(n[i], 22)})
	}
	return out
}

func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// clean makes text safe and short for a chart: control and format characters
// (which could reorder it) out, at most limit runes.
func clean(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == limit {
			b.WriteRune('…')
			break
		}
		if unicode.IsSpace(r) {
			r = ' '
		}
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			continue
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// inline turns a rendered document into an element that takes ink and font from
// its page.
func inline(svg []byte, title string) []byte {
	if i := bytes.Index(svg, []byte("<svg")); i > 0 {
		svg = svg[i:] // no XML declaration in the middle of a page
	}
	svg = bytes.ReplaceAll(svg, []byte("#010101"), []byte("currentColor"))
	svg = bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:system-ui,sans-serif"))
	if title == "" {
		title = "chart"
	}
	return bytes.Replace(svg, []byte("<svg"), fmt.Appendf(nil, `<svg role="img" aria-label="%s"`, attribute.Replace(title)), 1)
}

var attribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")
