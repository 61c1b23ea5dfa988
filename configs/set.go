package configs

import (
	"maps"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Set changes one leaf, or one entry of a map: "train.stage1.steps=500",
// "train.buckets=[6, 12]", "data.weights.openagentsafety=0.3". The value is
// YAML; text needs no quotes. A relative path starts at the working folder. c is
// unchanged when there is an error, which is an [*Error]. Call Validate after the
// last one.
func (c *Config) Set(assignment string) error {
	key, value, ok := strings.Cut(assignment, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return &Error{Reason: "want key=value, for example train.stage1.steps=500, not " + assignment}
	}
	v, parent := reflect.ValueOf(c).Elem(), ""
	rest := strings.Split(key, ".")
	for len(rest) > 0 && v.Kind() == reflect.Struct {
		f, ok := fieldByName(v, rest[0])
		if !ok {
			return &Error{Key: key, Reason: unknown(strings.Join(rest, "."), parent, names(v.Type()))}
		}
		v, parent, rest = f, join(parent, rest[0]), rest[1:]
	}
	switch {
	case v.Kind() == reflect.Struct:
		return &Error{Key: key, Reason: "is a section: set one of its keys, " + strings.Join(names(v.Type()), ", ")}
	case len(rest) > 0 && v.Kind() == reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		if err := assign(item, key, value); err != nil {
			return err
		}
		// Copies of a Config share the map.
		weights := maps.Clone(c.Data.Weights)
		if weights == nil {
			weights = map[string]float64{}
		}
		weights[strings.Join(rest, ".")] = item.Float()
		v.Set(reflect.ValueOf(weights))
		return nil
	case len(rest) > 0:
		return &Error{Key: key, Reason: "unknown key: " + parent + " has no keys of its own"}
	}
	if err := assign(v, key, value); err != nil {
		return err
	}
	return c.resolve(".")
}

func assign(v reflect.Value, key, value string) error {
	value = strings.TrimSpace(value)
	if v.Kind() == reflect.String {
		// Taken as it stands, so that a name such as 2026 needs no quotes.
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		v.SetString(value)
		return nil
	}
	node, err := parse("", []byte(value))
	if err != nil {
		err.(*Error).Key = key
		return err
	}
	d := decoder{}
	if node == nil {
		node = ast.Null(nil)
	}
	return d.decode(node, v, key)
}
