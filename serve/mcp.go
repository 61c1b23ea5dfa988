package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// Proxy stands between a client and a server of the Model Context Protocol
// (https://modelcontextprotocol.io/specification). It judges tools/call and passes
// everything else on as it is, in both directions. One connection is one run.
//
// A refused call is answered with a tool result that is an error and says why, so
// that the model reads it; the server never sees the call. A held call is put to
// the user by elicitation where the client can do that (as a request, or since
// version 2026-07-28 as a result that asks for input), and refused where it cannot. A call that can be read in two ways (a member that stands there twice,
// or as Name beside name) is not judged and counts as a failure.
type Proxy struct {
	Settings Settings
	Model    *guard.Model
	Task     guard.Task                     // what the user wants, as far as the proxy is told
	Run      string                         // id of the run in the decision log
	Record   func(decisionlog.Record) error // nil: nothing is logged
	HoldFor  time.Duration                  // how long a held call waits for the user; DefaultHold if 0
	Broken   error                          // why no call can be judged; Model may be nil then

	client, server mcp.Connection
	replies        chan jsonrpc.Message // of ours to the client

	mu      sync.Mutex // guards what follows; nothing is written under it
	run     *run       // nil before the first call
	tools   []guard.Tool
	waiting map[jsonrpc.ID]*awaited // requests of the client that wait for an answer
	elicits bool                    // the client can ask its user
	asked   map[string]chan bool    // by id of our elicitation
	held    map[string]heldCall     // by the state that comes back with the answer
	serial  int
}

// heldCall is a call that was put to the user by a result.
type heldCall struct {
	call    guard.Call
	verdict guard.Verdict
	until   time.Time
}

// DefaultHold is how long a held call waits for the user.
const DefaultHold = 55 * time.Second

// awaited is a request of the client whose answer is looked at.
type awaited struct {
	call   *guard.Call        // of tools/call; nil for tools/list
	cancel context.CancelFunc // of a held call: ends the wait
}

// Methods that the proxy looks at.
const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
	methodElicit     = "elicitation/create"
)

// Serve connects the client to the server until either goes away or ctx is done.
// The error is nil when the client went away.
func (p *Proxy) Serve(ctx context.Context, client, server mcp.Transport) (err error) {
	if err := p.Settings.Validate(); err != nil {
		return err
	}
	p.waiting, p.asked = map[jsonrpc.ID]*awaited{}, map[string]chan bool{}
	p.held = map[string]heldCall{}
	p.replies = make(chan jsonrpc.Message, maxUnderWay)
	if p.server, err = server.Connect(ctx); err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer p.server.Close()
	if p.client, err = client.Connect(ctx); err != nil {
		return fmt.Errorf("connect to the client: %w", err)
	}
	defer p.client.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, 3)
	go func() { ends <- p.reply(ctx) }()
	go func() { ends <- p.pump(ctx, "client", p.client, p.server, p.fromClient) }()
	go func() { ends <- p.pump(ctx, "server", p.server, p.client, p.fromServer) }()
	err = <-ends
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		err = errors.Join(err, p.run.log(decisionlog.Record{Event: decisionlog.End}))
	}
	return err
}

// errServerGone is the end of the server, which the client did not ask for.
var errServerGone = errors.New("serve: the MCP server has ended the connection")

// pump passes messages on. look returns what is to be written instead, nil for
// nothing.
func (p *Proxy) pump(ctx context.Context, name string, from, to mcp.Connection, look func(context.Context, jsonrpc.Message) jsonrpc.Message) error {
	for {
		m, err := from.Read(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF) && name == "client":
			return nil
		case errors.Is(err, io.EOF):
			return errServerGone
		default:
			return fmt.Errorf("read from the %s: %w", name, err)
		}
		if m = look(ctx, m); m == nil {
			continue
		}
		if err := to.Write(ctx, m); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("pass on from the %s: %w", name, err)
		}
	}
}

// reply writes our own messages to the client: a client that does not read while it
// writes must not keep us from reading.
func (p *Proxy) reply(ctx context.Context) error {
	for {
		select {
		case m := <-p.replies:
			if err := p.client.Write(ctx, m); err != nil && ctx.Err() == nil {
				return fmt.Errorf("answer the client: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// say hands a message to reply.
func (p *Proxy) say(ctx context.Context, m jsonrpc.Message) {
	select {
	case p.replies <- m:
	case <-ctx.Done():
	}
}

// fromClient looks at a message of the client.
func (p *Proxy) fromClient(ctx context.Context, m jsonrpc.Message) jsonrpc.Message {
	switch m := m.(type) {
	case *jsonrpc.Response:
		if id, ok := m.ID.Raw().(string); ok && p.answered(id, m) {
			return nil // to a question of ours
		}
	case *jsonrpc.Request:
		switch m.Method {
		case methodCall:
			return p.call(ctx, m)
		case methodList:
			p.mu.Lock()
			defer p.mu.Unlock()
			if m.IsCall() && p.waiting[m.ID] == nil && len(p.waiting) < maxUnderWay {
				p.waiting[m.ID] = &awaited{}
			}
		case methodInitialize:
			var params struct {
				Capabilities struct {
					Elicitation json.RawMessage `json:"elicitation"`
				} `json:"capabilities"`
			}
			if json.Unmarshal(m.Params, &params) == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.elicits = given(params.Capabilities.Elicitation)
			}
		case methodCancelled:
			if p.cancelled(m) {
				return nil
			}
		}
	}
	return m
}

// call judges a call and returns it if it may pass.
func (p *Proxy) call(ctx context.Context, m *jsonrpc.Request) (out jsonrpc.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var call guard.Call
	defer func() {
		if r := recover(); r != nil {
			out = p.failed(ctx, m, call, fmt.Errorf("internal error: %v", r))
		}
	}()
	if m.IsCall() && p.waiting[m.ID] != nil {
		// Its answer could not be told from that of the other.
		return p.answer(ctx, &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "dreamguard: a request with this id waits for its answer"}})
	}
	request, err := parseToolCall(m.Params)
	if p.Broken != nil {
		err = p.Broken
	}
	call = request.call
	if err != nil {
		return p.failed(ctx, m, call, err)
	}
	if token, approved := request.answer(); token != "" {
		// An approval holds for the call that was shown, once, and for a while.
		if h, ok := p.held[token]; ok && h.call == call {
			delete(p.held, token)
			return p.resume(ctx, m, request, h, approved)
		}
	}
	if p.run == nil {
		task := p.Task
		task.Tools = append(task.Tools, p.tools...)
		r := newRun(p.Run, p.Settings, p.Model.Start(task), p.Record)
		if err := r.log(decisionlog.Record{Event: decisionlog.Start}); err != nil {
			return p.failed(ctx, m, call, err)
		}
		p.run = r
	}
	v, action, err := p.run.judge(ctx, call)
	switch {
	case err != nil:
		return p.failed(ctx, m, call, err)
	case action == Deny:
		return p.refuse(ctx, m, v, "")
	case action == Ask:
		if rounds, elicits := request.client(); rounds {
			return p.holdByResult(ctx, m, call, v, elicits)
		}
		return p.hold(ctx, m, call, v)
	}
	return p.forward(m, call)
}

// forward notes a call whose answer is awaited, and lets it pass.
func (p *Proxy) forward(m *jsonrpc.Request, call guard.Call) jsonrpc.Message {
	if m.IsCall() {
		p.waiting[m.ID] = &awaited{call: &call}
		return m
	}
	// A notification has no answer. What came of it is not known.
	if p.run != nil {
		_ = p.run.observe(call, guard.Result{})
	}
	return m
}

// failed deals with a call that could not be judged.
func (p *Proxy) failed(ctx context.Context, m *jsonrpc.Request, call guard.Call, err error) jsonrpc.Message {
	action := p.Settings.Failed()
	if p.Record != nil {
		_ = p.Record(Crash(p.Run, p.Settings, action, err))
	}
	if action == Allow {
		if m.IsCall() {
			p.waiting[m.ID] = &awaited{call: &call}
		}
		return m
	}
	return p.answer(ctx, p.result(m, "crash", fmt.Sprintf("dreamguard could not judge: %v; it fails closed, so nothing passes until this is mended", err), nil))
}

// refuse answers a call in the server's place.
func (p *Proxy) refuse(ctx context.Context, m *jsonrpc.Request, v guard.Verdict, more string) jsonrpc.Message {
	return p.answer(ctx, p.result(m, "refusal", Explain(v)+more, &v))
}

// result is a tool result that says why a call was not made. The verdict is for
// the host: models are not shown _meta.
func (p *Proxy) result(m *jsonrpc.Request, cause, reason string, v *guard.Verdict) *jsonrpc.Response {
	if !m.IsCall() {
		return nil
	}
	meta := mcp.Meta{"dreamguard/cause": cause, "dreamguard/mode": p.Settings.Mode}
	if v != nil {
		meta["dreamguard/verdict"] = v
	}
	b, err := json.Marshal(&mcp.CallToolResult{Meta: meta, IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: reason}}})
	if err != nil {
		return &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reason}}
	}
	return &jsonrpc.Response{ID: m.ID, Result: b}
}

// answer gives an answer of ours and returns nil: nothing is passed on.
func (p *Proxy) answer(ctx context.Context, r *jsonrpc.Response) jsonrpc.Message {
	if r != nil {
		p.say(ctx, r)
	}
	return nil
}

// cancelled notes that the client no longer waits, and reports whether that
// concerns nobody else: a held call has not reached the server.
func (p *Proxy) cancelled(m *jsonrpc.Request) bool {
	var params struct {
		ID any `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(params.ID)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[id]
	if w == nil {
		return false
	}
	delete(p.waiting, id)
	if w.cancel != nil {
		w.cancel()
		return true
	}
	if w.call != nil && p.run != nil {
		// It may have been made, in part or whole.
		_ = p.run.observe(*w.call, guard.Result{Error: "cancelled by the client"})
	}
	return false
}

// fromServer looks at a message of the server.
func (p *Proxy) fromServer(_ context.Context, m jsonrpc.Message) jsonrpc.Message {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return m
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[r.ID]
	if w == nil || w.cancel != nil {
		return m
	}
	delete(p.waiting, r.ID)
	defer func() { _ = recover() }() // the client gets its answer whatever becomes of the record
	if w.call == nil {
		p.catalogue(r)
		return m
	}
	if p.run != nil {
		if err := p.run.observe(*w.call, toolResult(r)); err != nil && p.Record != nil {
			_ = p.Record(Crash(p.Run, p.Settings, Allow, err))
		}
	}
	return m
}

// catalogue keeps what the tools are called and said to do, for the first call.
func (p *Proxy) catalogue(r *jsonrpc.Response) {
	var list struct {
		Tools []guard.Tool `json:"tools"`
	}
	if p.run != nil || r.Error != nil || json.Unmarshal(r.Result, &list) != nil {
		return
	}
	known := map[string]bool{}
	for _, t := range p.tools {
		known[t.Name] = true
	}
	for _, t := range list.Tools {
		if !known[t.Name] && len(p.tools) < 256 {
			known[t.Name] = true
			p.tools = append(p.tools, guard.Tool{Name: clipTo(t.Name, guard.MaxTool), Description: clipTo(t.Description, 4<<10)})
		}
	}
}

// toolResult is what came of a call.
func toolResult(r *jsonrpc.Response) guard.Result {
	if r.Error != nil {
		return guard.Result{Error: r.Error.Error()}
	}
	var result struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if json.Unmarshal(r.Result, &result) != nil {
		return guard.Result{Output: ResultText(r.Result)}
	}
	text := ResultText(result.Content)
	// Servers repeat the text in it, but need not.
	if more := ResultText(result.Structured); more != "" && more != text {
		text += "\n" + more
	}
	if result.IsError {
		return guard.Result{Error: text}
	}
	return guard.Result{Output: text}
}
