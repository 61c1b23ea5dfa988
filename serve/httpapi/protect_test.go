package httpapi

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// Who may do what.
func TestRoles(t *testing.T) {
	s := begin(t, nil)
	id := s.start()
	for _, c := range []struct {
		method, path string
		allowed      string
	}{
		{"GET", "/v1/sessions", "ann bob eve root"},
		{"GET", "/v1/sessions/" + id, "ann eve root"},
		{"POST", "/v1/sessions/" + id + "/judge", "ann root"},
		{"GET", "/v1/holds", "ann bob eve root"},
		{"POST", "/v1/holds/x/approve", "eve root"},
		{"POST", "/v1/holds/x/deny", "eve root"},
		{"POST", "/v1/reload", "root"},
	} {
		for _, who := range []string{"", "ann", "bob", "eve", "root", "prom"} {
			body := any(nil)
			if c.method == "POST" {
				body = obj{}
				if strings.HasSuffix(c.path, "judge") {
					body = obj{"call": call("read")}
				}
			}
			status, out := s.do(who, c.method, c.path, body)
			told := code(out)
			denied := status == 401 || status == 403 || told == "no_session"
			if want := !(who != "" && strings.Contains(" "+c.allowed+" ", " "+who+" ")); denied != want {
				t.Errorf("%s %s as %q: %d %v", c.method, c.path, who, status, out)
			}
		}
	}
	if list := s.must(200, "bob", "GET", "/v1/sessions", nil); list["total"] != 0.0 {
		t.Errorf("bob sees sessions of ann: %v", list)
	}
	for who, want := range map[string]int{"": 401, "ann": 403, "prom": 200, "eve": 200} {
		req, _ := http.NewRequest("GET", s.url+"/metrics", nil)
		req.Header.Set("Authorization", "bearer "+secrets[who])
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.ReadFrom(r.Body)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("metrics as %q: %d, want %d", who, r.StatusCode, want)
		}
		if want == 200 && (!strings.Contains(b.String(), `dreamguard_decisions_total{action="allow",decision="PASS"} 2`) || !strings.Contains(b.String(), "dreamguard_sessions 1") || !strings.Contains(b.String(), "dreamguard_info{")) {
			t.Errorf("metrics: %s", b.String())
		}
	}
}

// Wrong tokens cost their sender its turn, and nobody else.
func TestTokenGuessing(t *testing.T) {
	s := begin(t, nil)
	secrets["guess"] = "dg_wrong"
	defer delete(secrets, "guess")
	limited := false
	for range 40 {
		status, _ := s.do("guess", "GET", "/v1/sessions", nil)
		limited = limited || status == 429
	}
	if !limited {
		t.Error("tokens can be tried without limit")
	}
	s.must(200, "ann", "GET", "/v1/sessions", nil)
}

// What a browser can be made to send from another site.
func TestOtherSites(t *testing.T) {
	s := begin(t, func(c *Config) { c.Tokens = nil; c.Hosts = []string{"guard.example"} })
	send := func(change func(*http.Request)) int {
		req, _ := http.NewRequest("POST", s.url+"/v1/sessions", strings.NewReader("{}"))
		req.Header.Set("Content-Type", "application/json")
		change(req)
		status, _ := s.send(req)
		return status
	}
	for name, c := range map[string]struct {
		want   int
		change func(*http.Request)
	}{
		"plain":             {201, func(*http.Request) {}},
		"same origin":       {201, func(r *http.Request) { r.Header.Set("Origin", s.url) }},
		"allowed host":      {201, func(r *http.Request) { r.Host = "guard.example:8787" }},
		"localhost":         {201, func(r *http.Request) { r.Host = "localhost:1" }},
		"rebinding":         {421, func(r *http.Request) { r.Host = "evil.example" }},
		"rebinding, suffix": {421, func(r *http.Request) { r.Host = "localhost.evil.example" }},
		"form":              {415, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
	} {
		if got := send(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		req, _ := http.NewRequest("POST", s.url+"/v1/sessions", strings.NewReader("{}"))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(header, value)
		if status, out := s.send(req); status != 403 || code(out) != "origin" {
			t.Errorf("%s %s: %d %v, want 403", header, value, status, out)
		}
	}
	// Nobody answers held calls where there are no tokens.
	if out := s.must(403, "", "POST", "/v1/holds/x/approve", obj{"hash": "x"}); code(out) != "role" {
		t.Error(out)
	}
}

func TestRate(t *testing.T) {
	s := begin(t, func(c *Config) { c.Rate = 2 })
	limited := 0
	for range 10 {
		if status, _ := s.do("ann", "GET", "/v1/sessions", nil); status == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("there is no limit")
	}
	s.must(200, "bob", "GET", "/v1/sessions", nil)
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"": "there are none", "a agent": "line 1", "a agent sha256:00": "line 1", "# x\n\na king sha256:" + strings.Repeat("0", 64): "line 3: tokens: role",
		"../a agent sha256:" + strings.Repeat("0", 64):                                              "name",
		"a agent sha256:" + strings.Repeat("0", 64) + "\na agent sha256:" + strings.Repeat("1", 64): "twice",
		"a agent " + strings.Repeat("0", 64):                                                        "third field",
	} {
		if _, err := ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	tokens, err := ParseTokens([]byte(tokenLines))
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := tokens.find(secrets["eve"]); !ok || who != (Principal{"eve", Approver}) {
		t.Error(who, ok)
	}
	for _, wrong := range []string{"", secrets["eve"] + "x", secrets["eve"][1:]} {
		if who, ok := tokens.find(wrong); ok {
			t.Errorf("%q is the token of %v", wrong, who)
		}
	}
	if strings.Contains(tokenLines, secrets["ann"]) {
		t.Error("the file holds a token in the clear")
	}
}
