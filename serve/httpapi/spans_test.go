package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Each verdict and commit is a span below that of its sender, without payloads.
func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	s := begin(t, func(c *Config) { c.Traces = trace.NewTracerProvider(trace.WithSpanProcessor(spans)) })
	id := s.start()
	req, err := http.NewRequest("POST", s.url+"/v1/sessions/"+id+"/judge", strings.NewReader(`{"call": {"tool": "hold", "arguments": {"to": "ann@example.com"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+secrets["ann"])
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if status, out := s.send(req); status != 200 {
		t.Fatal(out)
	}
	s.must(409, "ann", "POST", "/v1/sessions/"+id+"/commit", commitOf(7, "read"))
	var got []string
	for _, x := range spans.Ended() {
		a := map[string]string{}
		for _, kv := range x.Attributes() {
			a[string(kv.Key)] = kv.Value.String()
		}
		got = append(got, strings.Join([]string{x.Name(), a["dreamguard.decision"], a["dreamguard.action"], a["dreamguard.reasons"], a["dreamguard.error.code"]}, " "))
		if strings.Contains(fmt.Sprint(a), "example.com") {
			t.Errorf("a span holds a payload: %v", a)
		}
	}
	if want := `dreamguard.verdict HOLD ask ["policy"] |dreamguard.commit    not_judged`; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
	if p := spans.Ended()[0].Parent(); p.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the span is of trace %v", p.TraceID())
	}
}
