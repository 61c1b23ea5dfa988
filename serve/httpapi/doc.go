// Package httpapi is the guard as a service: agents in any language judge and
// commit their calls over HTTP and JSON, and people answer what is held.
//
//	s, err := httpapi.New(httpapi.Config{
//		Settings: serve.Settings{Mode: serve.Enforce, OnError: serve.DenyOnError, OnHold: serve.AskOnHold},
//		Open:     func() (*guard.Model, error) { return guard.Open("artifact") },
//		Tokens:   tokens, // nil: open to all who reach it, and nobody may answer
//		Record:   log.Append,
//	})
//	if err != nil { ... }
//	defer s.Close()
//	l, err := net.Listen("tcp", "127.0.0.1:8787")
//	err = s.Serve(ctx, l) // until ctx is done, then requests under way are finished
//
// A [Session] is one run of an agent. Each verdict has a number in it, which commit
// and skip name, so that a repeated request counts once. Sessions are in a [Store],
// held calls in a queue on disk.
//
// What each request and answer holds is said by the OpenAPI document that the
// service hands out at /openapi.json; docs/reference/http.md explains it.
package httpapi
