package format

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// Drawings are made on the server as SVG with attributes alone: the policy of pages forbids inline styles.

// identicon draws a picture that tells ids apart, in place of images from elsewhere.
func identicon(id string) template.HTML {
	sum := sha256.Sum256([]byte(strings.ToLower(id)))
	hue := (int(sum[0])<<8 | int(sum[1])) % 360
	var path strings.Builder
	for x := range 3 {
		for y := range 5 {
			if sum[2+5*x+y]&1 == 0 {
				continue
			}
			fmt.Fprintf(&path, "M%d %dh1v1h-1z", x, y)
			if x < 2 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", 4-x, y)
			}
		}
	}
	//nolint:gosec // made of numbers alone
	return template.HTML(fmt.Sprintf(`<svg class="identicon" viewBox="-.5 -.5 6 6" aria-hidden="true"><path fill="hsl(%d 55%% 50%%)" d="%s"/></svg>`,
		hue, path.String()))
}

// icon draws one of the few symbols of the pages.
func icon(name string) (template.HTML, error) {
	paths := map[string]string{
		"logo":   "M3 13V3h6a3.2 3.2 0 0 1 1 6.2L13 13h-3l-2.6-3.5H5.6V13zm2.6-5.6h3a1.1 1.1 0 0 0 0-2.2h-3z",
		"search": "M7 2a5 5 0 0 1 3.9 8.1l3 3-.9.9-3-3A5 5 0 1 1 7 2zm0 1.3a3.7 3.7 0 1 0 0 7.4 3.7 3.7 0 0 0 0-7.4z",
		"copy":   "M5 1h9v10h-3v-1.4h1.6V2.4H6.4V4H5zM2 5h8v10H2zm1.4 1.4v7.2h5.2V6.4z",
		"out":    "M9 2h5v5h-1.4V4.4L7 10l-1-1 5.6-5.6H9zM3 4h4v1.4H4.4v6.2h6.2V9H12v4H3z",
	}
	path, known := paths[name]
	if !known {
		return "", fmt.Errorf("no icon %q", name)
	}
	//nolint:gosec // a constant
	return template.HTML(`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" d="` +
		path + `"/></svg>`), nil
}

// gauge draws a score and its bounds on the line from -100 to 100.
func gauge(value, low, high float64) template.HTML {
	bound := func(f float64) float64 { return math.Max(-100, math.Min(100, f)) }
	value, low, high = bound(value), bound(low), bound(high)
	//nolint:gosec // made of numbers alone
	return template.HTML(fmt.Sprintf(`<svg class="gauge" viewBox="-104 0 208 14" preserveAspectRatio="none" role="img" aria-label="score %s, between %s and %s">`+
		`<rect class="track" x="-100" y="6" width="200" height="2"/><rect class="zero" x="-.5" y="2" width="1" height="10"/>`+
		`<rect class="range" x="%.2f" y="4" width="%.2f" height="6"/><rect class="mark" x="%.2f" y="1" width="3" height="12"/></svg>`,
		score(value), score(low), score(high), low, math.Max(1, high-low), value-1.5))
}

// bar draws a value as a bar from zero: to the right where it is positive, to the left where it is not. most is the
// largest absolute value of all bars that are compared.
func bar(value, most float64) template.HTML {
	length, class := 0.0, "plus"
	if most > 0 && !math.IsNaN(value) {
		length = math.Min(1, math.Abs(value)/most) * 100
	}
	x := 100.0
	if value < 0 {
		class, x = "minus", 100-length
	}
	//nolint:gosec // made of numbers alone
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 200 10" preserveAspectRatio="none" aria-hidden="true"><rect class="zero" x="99.5" y="0" width="1" height="10"/>`+
		`<rect class="%s" x="%.2f" y="1.5" width="%.2f" height="7"/></svg>`, class, x, length))
}

// Dot is a value of a series, with bounds where it has some.
type Dot struct {
	At        time.Time
	Value     *float64
	Low, High *float64
}

// Chart is what a script draws a series from: JSON with the seconds of the points, their values, and their bounds.
func Chart(dots []Dot) (string, error) {
	columns := [4][]any{{}, {}, {}, {}}
	for _, d := range dots {
		for i, value := range []any{d.At.Unix(), d.Value, d.Low, d.High} {
			columns[i] = append(columns[i], value)
		}
	}
	raw, err := json.Marshal(columns)
	if err != nil {
		return "", fmt.Errorf("chart: %w", err)
	}
	return string(raw), nil
}
