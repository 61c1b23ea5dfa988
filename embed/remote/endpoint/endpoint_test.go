package endpoint

import (
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	for s, want := range map[string]string{
		"https://api.openai.com/v1":         "",
		"http://localhost:8000/v1/":         "",
		"http://[::1]:8080":                 "",
		"":                                  "want an address such as",
		"localhost:8000":                    "want an address such as",
		"file:///etc/passwd":                "want an address such as",
		"https:///v1":                       "want an address such as",
		"http://u:hunter2@x/v1":             "holds a user or a password",
		"http://x/v1?key=hunter2":           "has a query",
		"http://x/v1#hunter2":               "has a query or a fragment",
		"http://x/v1/embeddings/":           "leave /embeddings out",
		"http://u:hunter2@x:port of call/v": "is not a URL",
	} {
		err := CheckURL(s)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%q: error %v, want %q", s, err, want)
		}
	}
}

func TestValidKeyEnv(t *testing.T) {
	for s, want := range map[string]bool{
		"OPENAI_API_KEY": true, "_k": true, "a1": true,
		"": false, "1a": false, "sk-abc": false, "A B": false, "A=B": false, strings.Repeat("A", 101): false,
	} {
		if ValidKeyEnv(s) != want {
			t.Errorf("ValidKeyEnv(%q) is not %v", s, want)
		}
	}
}
