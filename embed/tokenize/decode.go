package tokenize

import (
	"encoding/json"
	"strings"
)

type decoder struct {
	kind    int
	prefix  string // of continuations
	cleanup bool
}

const (
	decodeJoin = iota // tokens with spaces between them
	decodeWordPiece
	decodeByteLevel
)

func (t *Tokenizer) parseDecoder(raw json.RawMessage) error {
	kind, err := typeOf(raw, "decoder")
	if err != nil {
		return err
	}
	switch {
	case isNull(raw):
		return nil
	case kind == "WordPiece" && t.piece != nil:
		var d struct {
			Type    string `json:"type"`
			Prefix  string `json:"prefix"`
			Cleanup bool   `json:"cleanup"`
		}
		if err := decode(raw, &d, "decoder"); err != nil {
			return err
		}
		t.decoder = decoder{decodeWordPiece, d.Prefix, d.Cleanup}
		return nil
	case kind == "ByteLevel" && t.bpe != nil:
		t.decoder.kind = decodeByteLevel
		return nil
	}
	return unsupported("decoder.type", "%q with this model", kind)
}

// Decode returns the text of ids, as the file's decoder writes it. Special
// tokens and ids without token are left out.
//
// For byte-level BPE the bytes are those that were encoded, so the texts of two
// parts of a sequence join to the text of the whole, and a part may begin or end
// within a character. For WordPiece the text is a reading aid: case, accents and
// spaces are gone.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	first := true
	for _, id := range ids {
		token := t.Token(id)
		if token == "" || t.special[id] {
			continue
		}
		switch t.decoder.kind {
		case decodeByteLevel:
			if text, ok := t.bpe.bytesOf(id); ok {
				token = text
			}
		case decodeWordPiece:
			if rest, ok := strings.CutPrefix(token, t.decoder.prefix); ok && !first {
				token = rest
			} else if !first {
				token = " " + token
			}
			if t.decoder.cleanup {
				token = cleaner.clean(token)
			}
		default:
			if !first {
				b.WriteByte(' ')
			}
		}
		first = false
		b.WriteString(token)
	}
	return b.String()
}

// replacements are applied one after the other, each to the result of the one
// before.
type replacements [][2]string

var cleaner = replacements{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func (r replacements) clean(s string) string {
	for _, pair := range r {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return s
}
