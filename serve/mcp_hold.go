package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dreamguard/dreamguard/guard"
)

// question asks the user about a call.
func question(call guard.Call, v guard.Verdict) json.RawMessage {
	b, err := json.Marshal(&mcp.ElicitParams{
		Mode:            "form",
		Message:         fmt.Sprintf("%s\n\nThe call: %s %s\n\nMay it be made?", Explain(v), call.Tool, call.Arguments),
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
	})
	if err != nil { // strings alone: it cannot fail
		panic(err)
	}
	return b
}

// cannotAsk refuses a held call. The lock is held, as in all that follows.
func (p *Proxy) cannotAsk(ctx context.Context, m *jsonrpc.Request, call guard.Call, v guard.Verdict, why string) jsonrpc.Message {
	if err := p.run.skip(call); err != nil {
		return p.failed(ctx, m, call, err)
	}
	return p.refuse(ctx, m, v, why)
}

func (p *Proxy) holdFor() time.Duration {
	if p.HoldFor <= 0 {
		return DefaultHold
	}
	return p.HoldFor
}

// holdByResult asks the user by the result of the call.
func (p *Proxy) holdByResult(ctx context.Context, m *jsonrpc.Request, call guard.Call, v guard.Verdict, elicits bool) jsonrpc.Message {
	now := time.Now()
	for token, h := range p.held { // what nobody answered
		if now.After(h.until) {
			delete(p.held, token)
			if err := p.run.skip(h.call); err != nil {
				return p.failed(ctx, m, call, err)
			}
		}
	}
	if why := unasked(m, call, elicits); why != "" {
		return p.cannotAsk(ctx, m, call, v, why)
	}
	token := rand.Text()
	b, err := json.Marshal(map[string]any{
		"content": []any{}, "resultType": "input_required", "requestState": token,
		"inputRequests": map[string]any{holdInput: map[string]any{"method": methodElicit, "params": question(call, v)}},
	})
	if err != nil {
		return p.failed(ctx, m, call, err)
	}
	p.held[token] = heldCall{call: call, verdict: v, until: now.Add(p.holdFor())}
	return p.answer(ctx, &jsonrpc.Response{ID: m.ID, Result: b})
}

// What is said of a held call that was not made.
const (
	noAsking = " This client cannot ask the user."
	tooLong  = " It is too large to be shown to the user."
	saidNo   = " The user said no."
	noAnswer = " The user did not answer in time."
)

// unasked says why the user cannot be asked, "" if nothing is in the way.
func unasked(m *jsonrpc.Request, call guard.Call, elicits bool) string {
	switch {
	case !elicits || !m.IsCall():
		return noAsking
	case len(call.Arguments) > guard.MaxCall || len(call.Tool) > guard.MaxTool:
		return tooLong // nobody can agree to what he was not shown
	}
	return ""
}

// resume goes on with a call that comes back with the user's answer.
func (p *Proxy) resume(ctx context.Context, m *jsonrpc.Request, request toolCall, h heldCall, approved bool) jsonrpc.Message {
	switch {
	case !approved:
		return p.cannotAsk(ctx, m, h.call, h.verdict, saidNo)
	case time.Now().After(h.until):
		return p.cannotAsk(ctx, m, h.call, h.verdict, noAnswer)
	}
	params, err := request.withoutAnswer()
	if err != nil {
		return p.failed(ctx, m, h.call, err)
	}
	return p.forward(&jsonrpc.Request{ID: m.ID, Method: m.Method, Params: params}, h.call)
}

// hold asks the user by a request to the client.
func (p *Proxy) hold(ctx context.Context, m *jsonrpc.Request, call guard.Call, v guard.Verdict) jsonrpc.Message {
	if why := unasked(m, call, p.elicits); why != "" {
		return p.cannotAsk(ctx, m, call, v, why)
	}
	p.serial++
	id := fmt.Sprintf("dreamguard-hold-%d", p.serial)
	ask, err := jsonrpc.MakeID(id)
	if err != nil {
		return p.failed(ctx, m, call, err)
	}
	waited, cancel := context.WithTimeout(ctx, p.holdFor())
	reply := make(chan bool, 1)
	p.asked[id], p.waiting[m.ID] = reply, &awaited{cancel: cancel}
	p.say(ctx, &jsonrpc.Request{ID: ask, Method: methodElicit, Params: question(call, v)})
	go func() {
		defer cancel()
		approved, how := false, saidNo
		select {
		case approved = <-reply:
		case <-waited.Done():
			how = noAnswer
			p.say(ctx, &jsonrpc.Request{Method: methodCancelled, Params: json.RawMessage(`{"requestId":"` + id + `"}`)})
		}
		if p.release(ctx, m, call, v, id, approved, how) && p.server.Write(ctx, m) != nil {
			p.server.Close() // which ends the pump from it
		}
	}()
	return nil
}

// release ends the wait of a held call, and reports whether it is to be passed on.
func (p *Proxy) release(ctx context.Context, m *jsonrpc.Request, call guard.Call, v guard.Verdict, id string, approved bool, how string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, id)
	waiting := p.waiting[m.ID] != nil // else the client cancelled it
	delete(p.waiting, m.ID)
	if approved && waiting {
		p.forward(m, call)
		return true
	}
	if err := p.run.skip(call); err != nil {
		p.failed(ctx, m, call, err)
	} else if waiting {
		p.refuse(ctx, m, v, how)
	}
	return false
}

// answered takes the user's answer to a question of ours.
func (p *Proxy) answered(id string, m *jsonrpc.Response) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply, ours := p.asked[id]
	if !ours {
		return false
	}
	var result struct {
		Action string `json:"action"`
	}
	approved := m.Error == nil && json.Unmarshal(m.Result, &result) == nil && result.Action == "accept"
	select {
	case reply <- approved:
	default: // it was answered before
	}
	return true
}
