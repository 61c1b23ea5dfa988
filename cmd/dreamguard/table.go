package main

import (
	"fmt"
	"text/tabwriter"
)

// table prints rows of aligned cells.
type table struct {
	w   *tabwriter.Writer
	err error
}

func (a *app) table() *table {
	return &table{w: tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)}
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		sep := "\t"
		if i == len(cells)-1 {
			sep = "\n"
		}
		if _, err := fmt.Fprint(t.w, c, sep); err != nil && t.err == nil {
			t.err = err
		}
	}
}

// flush writes the rows and returns the first error.
func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	return t.err
}
