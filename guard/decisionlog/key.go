package decisionlog

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// keyBytes is the length of a key, that of the hash (RFC 2104, section 3).
const keyBytes = 32

// loadKey reads the key at path, or makes one. The log's lock is held.
func loadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w %s: it is no regular file", ErrKey, path)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return nil, fmt.Errorf("%w %s: others may read it (mode %04o): chmod 600 it; if it was read already, name a new one", ErrKey, path, info.Mode().Perm())
	}
	b, err := boundedfile.Read(path, 4<<10)
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(b)))
	if err != nil || len(secret) != keyBytes {
		return nil, fmt.Errorf("%w %s: want %d hexadecimal digits, such as `openssl rand -hex %d` prints", ErrKey, path, 2*keyBytes, keyBytes)
	}
	return secret, nil
}

func makeKey(path string) ([]byte, error) {
	secret := make([]byte, keyBytes)
	rand.Read(secret) // never fails
	err := atomicfile.WritePrivate(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%x\n", secret)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return secret, nil
}
