package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
	"github.com/dreamguard/dreamguard/serve/httpapi"
)

// addToken makes a token and adds its hash to a file, as a whole or not at all.
func addToken(file, name string, role httpapi.Role) (secret string, err error) {
	secret, line, err := httpapi.NewToken(name, role)
	if err != nil {
		return "", usagef("serve token: %v", err)
	}
	unlock, err := filelock.Lock(file+".lock", filelock.Exclusive)
	if err != nil {
		return "", err
	}
	defer unlock()
	old, err := boundedfile.Read(file, 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if n := len(old); n > 0 && old[n-1] != '\n' {
		old = append(old, '\n')
	}
	whole := append(old, line...)
	if _, err := httpapi.ParseTokens(whole); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return secret, atomicfile.WritePrivate(file, func(w io.Writer) error {
		_, err := w.Write(whole)
		return err
	})
}
