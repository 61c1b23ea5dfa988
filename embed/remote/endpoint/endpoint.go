// Package endpoint checks what names an embeddings server in a configuration,
// without what it takes to speak to one.
//
//	if err := endpoint.CheckURL(url); err != nil {
//		return fmt.Errorf("encoder.remote.url: %w", err)
//	}
package endpoint

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// envName is a name that an environment variable can have in any shell.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// ValidKeyEnv reports whether name can be that of an environment variable.
func ValidKeyEnv(name string) bool { return envName.MatchString(name) }

// CheckURL reports what is wrong with a base URL, the part of an address that
// comes before /embeddings. It never repeats the URL, which may hold a secret.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want an address such as https://api.openai.com/v1 or http://localhost:8000/v1")
	case u.User != nil:
		return errors.New("holds a user or a password: put an API key into an environment variable instead")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("has a query or a fragment: want only what comes before /embeddings")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/embeddings"):
		return errors.New("leave /embeddings out: it is added")
	}
	return nil
}
