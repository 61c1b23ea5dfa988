package floor

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// SealSchema is the schema of a seal file.
const SealSchema = "dreamguard.floor-seal/v1"

// ErrSealBroken is wrapped by Verify's error where a protected field is not what
// was sealed.
var ErrSealBroken = errors.New("the seal is broken")

// Seal pins down the limits in one document: a digest of every protected field,
// whatever the layout, and one of all together.
type Seal struct {
	Schema string      `json:"schema"`
	Rules  string      `json:"rules"`  // digest of the rules
	Fields []SealField `json:"fields"` // sorted by path
	Digest string      `json:"digest"` // of rules and fields; an HMAC where a key was given
	Keyed  bool        `json:"keyed"`
}

// SealField is one protected field.
type SealField struct {
	Path   string `json:"path"`
	Rule   string `json:"rule"`
	Digest string `json:"digest"`
}

// Seal takes the seal of a document. With a key the digest is an HMAC-SHA256, so
// that whoever can write the seal file, but does not know the key, cannot make a
// new one. A document that can be read in several ways is refused.
func (f *Floor) Seal(format Format, text, key []byte) (Seal, error) {
	d, err := f.document(format, text)
	if err != nil {
		return Seal{}, err
	}
	for _, v := range d.views[1:] {
		if len(f.compareViews(d.views[0], v)) > 0 || len(f.compareViews(v, d.views[0])) > 0 {
			return Seal{}, unreadable("readers differ in what its limits are (equal keys, merge keys or several documents): write them in one way")
		}
	}
	s := Seal{Schema: SealSchema, Rules: f.rulesDigest(), Fields: []SealField{}, Keyed: len(key) > 0}
	c := comparer{f: f}
	if d.views[0].root != nil {
		c.each(d.views[0].root, func(p *part) {
			h := sha256.New()
			writeNode(h, p.val)
			s.Fields = append(s.Fields, SealField{sealPath(c.path), f.rules.Rules[p.rule].Name, hex.EncodeToString(h.Sum(nil))})
		})
	}
	slices.SortFunc(s.Fields, func(a, b SealField) int {
		return strings.Compare(a.Path+"\x00"+a.Digest, b.Path+"\x00"+b.Digest)
	})
	s.Digest = s.sum(key)
	return s, nil
}

// sealPath is a path that two different fields never share.
func sealPath(path []string) string {
	parts := make([]string, len(path))
	for i, s := range path {
		parts[i] = s
		if !plainKey(s) && !(strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]")) {
			parts[i] = strconv.QuoteToASCII(s)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "."), ".[", "[")
}

func (s Seal) sum(key []byte) string {
	h := sha256.New()
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	fmt.Fprintf(h, "%s\n%s\n", SealSchema, s.Rules)
	for _, f := range s.Fields {
		fmt.Fprintf(h, "%q %q %s\n", f.Path, f.Rule, f.Digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (f *Floor) rulesDigest() string {
	b, err := json.Marshal(f.rules)
	if err != nil {
		panic(err) // strings and lists of strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeNode writes an unambiguous form of a value, in which the order of keys
// does not matter.
func writeNode(w io.Writer, n *node) {
	fmt.Fprintf(w, "%d %q %q %q %d %d\n", n.kind, n.scalar, n.other, n.tag, len(n.ents), len(n.items))
	for _, item := range n.items {
		writeNode(w, item)
	}
	ents := slices.Clone(n.ents)
	slices.SortStableFunc(ents, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range ents {
		fmt.Fprintf(w, "%q %t\n", e.key, e.merge)
		writeNode(w, e.val)
	}
}

// Verify reports whether the limits in a document are those of the seal. The
// error names the first field that differs and wraps ErrSealBroken.
func (f *Floor) Verify(s Seal, format Format, text, key []byte) error {
	broken := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSealBroken, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Schema != SealSchema:
		return broken("the seal has the schema %.40q, want %s", s.Schema, SealSchema)
	case s.Keyed != (len(key) > 0):
		return broken("the seal was made %s a key, and is checked %s one", withOrWithout(s.Keyed), withOrWithout(len(key) > 0))
	case !hmac.Equal([]byte(s.sum(key)), []byte(s.Digest)):
		return broken("the seal itself was changed, or the key is another one")
	case s.Rules != f.rulesDigest():
		return broken("it was taken under other rules")
	}
	now, err := f.Seal(format, text, key)
	if err != nil {
		return err
	}
	was := map[string]string{}
	for _, x := range s.Fields {
		was[x.Path] += x.Digest
	}
	is := map[string]string{}
	for _, x := range now.Fields {
		is[x.Path] += x.Digest
	}
	for _, x := range now.Fields {
		switch d, ok := was[x.Path]; {
		case !ok:
			return broken("%s was added", x.Path)
		case d != is[x.Path]:
			return broken("%s was changed", x.Path)
		}
	}
	for _, x := range s.Fields {
		if _, ok := is[x.Path]; !ok {
			return broken("%s was removed", x.Path)
		}
	}
	if now.Digest != s.Digest {
		return broken("the digests differ")
	}
	return nil
}

func withOrWithout(b bool) string {
	if b {
		return "with"
	}
	return "without"
}

// ReadSeal reads a seal file.
func ReadSeal(text []byte) (Seal, error) {
	var s Seal
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Seal{}, fmt.Errorf("%w: the seal file: %v", ErrSealBroken, err)
	}
	return s, nil
}
