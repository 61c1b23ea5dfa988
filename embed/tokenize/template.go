package tokenize

import (
	"encoding/json"
	"fmt"
)

// parsePostProcessor finds the special tokens around a single text.
func (t *Tokenizer) parsePostProcessor(raw json.RawMessage, path string) error {
	kind, err := typeOf(raw, path)
	if err != nil {
		return err
	}
	switch kind {
	case "":
		if !isNull(raw) {
			return badFormat(path+".type", "missing")
		}
		return nil
	case "ByteLevel": // moves offsets, adds nothing
		return nil
	case "TemplateProcessing":
		return t.parseTemplate(raw, path)
	case "BertProcessing", "RobertaProcessing":
		return t.parseClsSep(raw, path)
	case "Sequence":
		list, err := sequence(raw, path, "processors")
		if err != nil {
			return err
		}
		for i, p := range list {
			at := fmt.Sprintf("%s.processors[%d]", path, i)
			if kind, err := typeOf(p, at); err != nil {
				return err
			} else if kind == "Sequence" {
				return unsupported(at+".type", "a sequence in a sequence")
			}
			if len(t.before)+len(t.after) > 0 {
				return unsupported(at, "follows one that adds tokens already")
			}
			if err := t.parsePostProcessor(p, at); err != nil {
				return err
			}
		}
		return nil
	}
	return unsupported(path+".type", "%q", kind)
}

func (t *Tokenizer) parseTemplate(raw json.RawMessage, path string) error {
	type piece struct {
		Sequence *struct {
			ID     string `json:"id"`
			TypeID int    `json:"type_id"`
		} `json:"Sequence"`
		SpecialToken *struct {
			ID     string `json:"id"`
			TypeID int    `json:"type_id"`
		} `json:"SpecialToken"`
	}
	var p struct {
		Type    string          `json:"type"`
		Single  []piece         `json:"single"`
		Pair    json.RawMessage `json:"pair"` // no pairs are encoded
		Special map[string]struct {
			ID     string   `json:"id"`
			IDs    []int32  `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
	}
	if err := decode(raw, &p, path); err != nil {
		return err
	}
	var around [2][]int32
	side := 0
	for i, part := range p.Single {
		at := fmt.Sprintf("%s.single[%d]", path, i)
		switch {
		case part.Sequence != nil && part.SpecialToken != nil, part.Sequence == nil && part.SpecialToken == nil:
			return badFormat(at, "want either Sequence or SpecialToken")
		case part.Sequence != nil:
			if part.Sequence.ID != "A" || side > 0 {
				return unsupported(at+".Sequence", "want the sequence A once")
			}
			if part.Sequence.TypeID != 0 {
				return unsupported(at+".Sequence.type_id", "%d, want 0", part.Sequence.TypeID)
			}
			side = 1
			continue
		}
		special, ok := p.Special[part.SpecialToken.ID]
		if !ok {
			return badFormat(at+".SpecialToken.id", "%q is not among the special_tokens", part.SpecialToken.ID)
		}
		if part.SpecialToken.TypeID != 0 {
			return unsupported(at+".SpecialToken.type_id", "%d, want 0", part.SpecialToken.TypeID)
		}
		for _, id := range special.IDs {
			if err := t.checkID(id, fmt.Sprintf("%s.special_tokens[%q].ids", path, part.SpecialToken.ID)); err != nil {
				return err
			}
			around[side] = append(around[side], id)
		}
		if len(around[side]) > maxAround {
			return unsupported(at, "more than %d special tokens on one side of the text", maxAround)
		}
	}
	if side == 0 {
		return badFormat(path+".single", "does not hold the text")
	}
	t.before, t.after = around[0], around[1]
	return nil
}

// parseClsSep reads BertProcessing and RobertaProcessing.
func (t *Tokenizer) parseClsSep(raw json.RawMessage, path string) error {
	var p struct {
		Type   string          `json:"type"`
		Sep    json.RawMessage `json:"sep"`
		Cls    json.RawMessage `json:"cls"`
		Trim   bool            `json:"trim_offsets"`
		Prefix bool            `json:"add_prefix_space"` // of offsets only
	}
	if err := decode(raw, &p, path); err != nil {
		return err
	}
	read := func(raw json.RawMessage, at string) ([]int32, error) {
		var pair []json.RawMessage
		if err := decode(raw, &pair, at); err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, badFormat(at, "want a token and its id")
		}
		var id int32
		if err := decode(pair[1], &id, at+"[1]"); err != nil {
			return nil, err
		}
		return []int32{id}, t.checkID(id, at+"[1]")
	}
	var err error
	if t.before, err = read(p.Cls, path+".cls"); err != nil {
		return err
	}
	t.after, err = read(p.Sep, path+".sep")
	return err
}

func (t *Tokenizer) checkID(id int32, at string) error {
	if id < 0 || int(id) >= len(t.tokens) {
		return badFormat(at, "there is no token %d", id)
	}
	return nil
}
