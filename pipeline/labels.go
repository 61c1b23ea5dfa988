package pipeline

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// maxLabels bounds a file of labels in bytes.
const maxLabels = 256 << 20

// ErrLabels is wrapped by every error about a file of labels.
var ErrLabels = errors.New("labels")

// runLabel is what a file of labels says of one run.
type runLabel struct {
	label  data.Label
	hazard *int // first hazard, nil where it is not located
}

// readLabels reads a file of labels: see parseLabels.
func readLabels(path string) (map[string]runLabel, error) {
	b, err := boundedfile.Read(path, maxLabels)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLabels, err)
	}
	labels, err := parseLabels(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrLabels, err)
	}
	return labels, nil
}

// parseLabels reads labels by the id of their run, in one of three forms:
//
//	{"id": "run-1", "label": 1, "first_hazard": 3}   JSON lines; first_hazard may be left out
//	{"run-1": 1, "run-2": 0}                         one JSON object
//	run-1,unsafe,3                                   CSV, with or without a line of names
//
// A label is 0 or safe, 1 or unsafe. A run may be named once.
func parseLabels(b []byte) (map[string]runLabel, error) {
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	out := map[string]runLabel{}
	add := func(at, id string, l runLabel) error {
		switch {
		case id == "":
			return fmt.Errorf("%s: the id is empty", at)
		case l.hazard != nil && (l.label != data.Unsafe || *l.hazard < 0):
			return fmt.Errorf("%s: first_hazard of run %.60q is %d: want the index of a step of an unsafe run", at, id, *l.hazard)
		}
		if _, twice := out[id]; twice {
			return fmt.Errorf("%s: run %.60q has a label already", at, id)
		}
		out[id] = l
		return nil
	}
	var err error
	switch text := bytes.TrimSpace(b); {
	case len(text) == 0:
		return nil, errors.New("the file is empty")
	case text[0] == '{':
		err = labelsJSON(b, add)
	default:
		err = labelsCSV(b, add)
	}
	return out, err
}

func labelsJSON(b []byte, add func(at, id string, l runLabel) error) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	line, counted := 1, 0
	for {
		begins := len(b) - len(bytes.TrimLeft(b[dec.InputOffset():], " \t\r\n")) // the next value
		line, counted = line+bytes.Count(b[counted:begins], []byte("\n")), begins
		at := fmt.Sprintf("line %d", line)
		var fields map[string]json.RawMessage
		if err := dec.Decode(&fields); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		_, one := fields["label"]
		if _, named := fields["id"]; !one || !named { // an object of ids
			for id, raw := range fields {
				label, err := parseLabel(raw)
				if err != nil {
					return fmt.Errorf("%s: run %.60q: %w", at, id, err)
				}
				if err := add(at, id, runLabel{label: label}); err != nil {
					return err
				}
			}
			continue
		}
		var id string
		var l runLabel
		if err := json.Unmarshal(fields["id"], &id); err != nil {
			return fmt.Errorf("%s: id: %w", at, err)
		}
		var err error
		if l.label, err = parseLabel(fields["label"]); err != nil {
			return fmt.Errorf("%s: run %.60q: %w", at, id, err)
		}
		if raw, ok := fields["first_hazard"]; ok {
			if err := json.Unmarshal(raw, &l.hazard); err != nil {
				return fmt.Errorf("%s: first_hazard: %w", at, err)
			}
		}
		if err := add(at, id, l); err != nil {
			return err
		}
	}
}

func labelsCSV(b []byte, add func(at, id string, l runLabel) error) error {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	for first := true; ; first = false {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		n, _ := r.FieldPos(0)
		at := fmt.Sprintf("line %d", n)
		if first && len(row) > 1 && strings.EqualFold(row[0], "id") {
			continue
		}
		if len(row) < 2 || len(row) > 3 {
			return fmt.Errorf("%s: %d fields, want id,label or id,label,first_hazard", at, len(row))
		}
		var l runLabel
		if l.label, err = parseLabel([]byte(row[1])); err != nil {
			return fmt.Errorf("%s: run %.60q: %w", at, row[0], err)
		}
		if len(row) == 3 && strings.TrimSpace(row[2]) != "" {
			if err := json.Unmarshal([]byte(row[2]), &l.hazard); err != nil {
				return fmt.Errorf("%s: first_hazard is %.20q: want the index of a step", at, row[2])
			}
		}
		if err := add(at, row[0], l); err != nil {
			return err
		}
	}
}

func parseLabel(b []byte) (data.Label, error) {
	switch s := strings.ToLower(strings.Trim(strings.TrimSpace(string(b)), `"`)); s {
	case "0", "safe":
		return data.Safe, nil
	case "1", "unsafe":
		return data.Unsafe, nil
	default:
		return data.Unknown, fmt.Errorf("label is %.20q: want 0 or safe, 1 or unsafe", s)
	}
}
