package httpapi

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/internal/boundedfile"
)

// Role says what a token is good for.
type Role string

// The roles. No role holds another but Admin, which holds all: who runs agents
// must not answer for what they do.
const (
	Agent    Role = "agent"    // its own sessions
	Approver Role = "approver" // reads all sessions, answers held calls
	Metrics  Role = "metrics"  // reads metrics
	Admin    Role = "admin"    // everything, and reload
)

// Principal is who sends a request.
type Principal struct {
	Name string
	Role Role
}

// local is who sends requests where there are no tokens.
var local = Principal{Name: "local", Role: Agent}

// Tokens are the bearer tokens that are accepted. Only their SHA-256 is known:
// tokens are random, so nothing slower is needed.
type Tokens struct {
	list []token
}

type token struct {
	Principal
	sum [sha256.Size]byte
}

// ErrTokens is wrapped by errors about a file of tokens.
var ErrTokens = errors.New("tokens")

const (
	maxTokens     = 1000
	maxTokensFile = 1 << 20
	tokenPrefix   = "dg_"
)

// NewToken makes a token. It is shown to who shall use it, and the line goes into
// the file of tokens.
func NewToken(name string, role Role) (secret, line string, err error) {
	if err := checkToken(name, role); err != nil {
		return "", "", err
	}
	secret = tokenPrefix + rand.Text() + rand.Text() // 260 bits
	sum := sha256.Sum256([]byte(secret))
	return secret, fmt.Sprintf("%s %s sha256:%s\n", name, role, hex.EncodeToString(sum[:])), nil
}

func checkToken(name string, role Role) error {
	if !validID(name) {
		return fmt.Errorf("%w: name %.40q: want letters, digits, - _ and ., at most %d", ErrTokens, name, maxID)
	}
	switch role {
	case Agent, Approver, Metrics, Admin:
		return nil
	}
	return fmt.Errorf("%w: role %.40q: want agent, approver, metrics or admin", ErrTokens, role)
}

// ReadTokens reads a file of tokens: lines "NAME ROLE sha256:HEX". Empty lines and
// those that begin with # are left out.
func ReadTokens(path string) (*Tokens, error) {
	b, err := boundedfile.Read(path, maxTokensFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	t, err := ParseTokens(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// ParseTokens reads the content of a file of tokens.
func ParseTokens(b []byte) (*Tokens, error) {
	t := new(Tokens)
	names := map[string]bool{}
	in := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%w: line %d: want NAME ROLE sha256:HEX", ErrTokens, n)
		}
		e := token{Principal: Principal{fields[0], Role(fields[1])}}
		if err := checkToken(e.Name, e.Role); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		digits, ok := strings.CutPrefix(fields[2], "sha256:")
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || copy(e.sum[:], sum) != len(e.sum) || len(sum) != len(e.sum) {
			return nil, fmt.Errorf("%w: line %d: the third field is no sha256:HEX of a token", ErrTokens, n)
		}
		if names[e.Name] || len(t.list) >= maxTokens {
			return nil, fmt.Errorf("%w: line %d: the name %s stands there twice, or there are more than %d", ErrTokens, n, e.Name, maxTokens)
		}
		names[e.Name] = true
		t.list = append(t.list, e)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTokens, err)
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("%w: there are none: make one with dreamguard serve token", ErrTokens)
	}
	return t, nil
}

// Len is how many there are.
func (t *Tokens) Len() int { return len(t.list) }

// has reports whether somebody has the role.
func (t *Tokens) has(role Role) bool {
	for _, e := range t.list {
		if e.Role == role || e.Role == Admin {
			return true
		}
	}
	return false
}

// find returns whose token it is. Its time tells neither whether there is such a
// token nor which.
func (t *Tokens) find(secret string) (Principal, bool) {
	sum := sha256.Sum256([]byte(secret))
	found := -1
	for i := range t.list {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], t.list[i].sum[:]), i, found)
	}
	if found < 0 {
		return Principal{}, false
	}
	return t.list[found].Principal, true
}
