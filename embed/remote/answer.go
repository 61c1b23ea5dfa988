package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// answer is what a server answers. The library's own type is not used: it reads
// null as 0 and text it cannot decode as no values.
type answer struct {
	Model string `json:"model"`
	Data  []struct {
		Index     *int            `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
}

// parseAnswer reads the vectors of n texts, in the order of the texts whatever
// the order in the answer, and scales them to unit length. With dims 0 the first
// vector decides their length. Errors wrap [ErrAnswer] or, where the answer is no
// JSON, [errTorn].
func parseAnswer(raw []byte, n, dims int) (model string, vectors []float32, err error) {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return "", nil, fmt.Errorf("%w: %w", errTorn, err)
	}
	if len(a.Data) != n {
		return "", nil, fmt.Errorf("%w: it holds %d vectors for %d texts", ErrAnswer, len(a.Data), n)
	}
	seen := make([]bool, n)
	var v []float32
	for k, d := range a.Data {
		if d.Index == nil || *d.Index < 0 || *d.Index >= n || seen[*d.Index] {
			return "", nil, fmt.Errorf("%w: data[%d].index is %s, want each of 0 to %d once", ErrAnswer, k, describe(d.Index), n-1)
		}
		seen[*d.Index] = true
		if v, err = parseVector(v[:0], d.Embedding); err != nil {
			return "", nil, fmt.Errorf("%w: data[%d].embedding %w", ErrAnswer, k, err)
		}
		if dims == 0 {
			if dims = len(v); dims > maxDims {
				return "", nil, fmt.Errorf("%w: data[%d].embedding has %d values, at most %d are supported", ErrDims, k, dims, maxDims)
			}
		}
		if len(v) != dims || dims == 0 {
			return "", nil, fmt.Errorf("%w: data[%d].embedding has %d values, want %d", ErrDims, k, len(v), dims)
		}
		if vectors == nil {
			vectors = make([]float32, n*dims)
		}
		if err := normalise(v); err != nil {
			return "", nil, fmt.Errorf("%w: data[%d].embedding %w", ErrAnswer, k, err)
		}
		copy(vectors[*d.Index*dims:], v)
	}
	return a.Model, vectors, nil
}

func describe(index *int) string {
	if index == nil {
		return "missing"
	}
	return fmt.Sprint(*index)
}

// parseVector appends the values of a JSON list, or of base64 over little-endian
// float32 as encoding_format=base64 asks for.
func parseVector(dst []float32, raw json.RawMessage) ([]float32, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		// Some servers leave the padding out.
		b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil {
			return nil, fmt.Errorf("is not base64: %w", err)
		}
		if len(b)%4 != 0 {
			return nil, fmt.Errorf("is base64 of %d bytes, which are no float32 values", len(b))
		}
		for ; len(b) > 0; b = b[4:] {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return dst, nil
	}
	if len(raw) == 0 || raw[0] != '[' {
		return nil, fmt.Errorf("is %.20q, want a list of numbers or base64", raw)
	}
	// encoding/json leaves an element as it is for null, which is how some servers
	// write NaN.
	if bytes.Contains(raw, []byte("null")) {
		return nil, fmt.Errorf("holds null")
	}
	if err := json.Unmarshal(raw, &dst); err != nil {
		return nil, fmt.Errorf("is not a list of numbers: %w", err)
	}
	return dst, nil
}

// minNorm is below every vector that means something.
const minNorm = 1e-12

// normalise scales a vector to unit length.
func normalise(v []float32) error {
	var sum float64
	for i, x := range v {
		if x-x != 0 {
			return fmt.Errorf("has the value %v at %d", x, i)
		}
		sum += float64(x) * float64(x)
	}
	norm := math.Sqrt(sum)
	if norm < minNorm {
		return fmt.Errorf("is a vector of zeros")
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / norm)
	}
	return nil
}

// dot of two unit vectors is their cosine.
func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
