package formats

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/internal/lines"
)

// ClaudeCode reads the session logs of Claude Code (JSON lines, one file per
// session, with sessionId, uuid, type and message on each line). The layout is
// not documented by its maker; lines of a type that is not a turn are passed
// over and counted.
//
// One session is one run: the first prompt is the task, later prompts are
// replies to the agent's messages. The blocks of one assistant message, which
// stand on lines of their own, are put together again. Left out and counted are
// lines that nobody typed (marked isMeta, or the summary after a compaction) and
// the turns of subagents (isSidechain), unless the whole session is a
// subagent's. Labels: the format has none, so runs stay unknown.
type ClaudeCode struct{}

// Name implements [Format].
func (ClaudeCode) Name() string { return "claude-code" }

// Detect implements [Format].
func (ClaudeCode) Detect(head []byte) bool {
	k := look(head)
	return k[".sessionId"] && (k[".uuid"] || k[".message.role"] || k[".type=queue-operation"]) || k[".leafUuid"] && k[".type=summary"] ||
		k[".type=file-history-snapshot"]
}

type sessionLine struct {
	Type      string          `json:"type"`
	Session   string          `json:"sessionId"`
	Sidechain bool            `json:"isSidechain"`
	Meta      bool            `json:"isMeta"`
	Compact   bool            `json:"isCompactSummary"`
	CWD       string          `json:"cwd"`
	Message   *sessionMessage `json:"message"`
}

type sessionMessage struct {
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
}

// session gathers the lines of one session.
type session struct {
	main, side *chat
	line       int
	size       int // bytes of its lines

	// The assistant message that is being put together.
	id     string
	blocks []block
	on     *chat
}

// Import implements [Format].
func (f ClaudeCode) Import(r io.Reader, name string, emit func(*data.Trajectory) error) (Report, error) {
	s := newSink(f.Name(), name, emit)
	var cur *session
	var curID string
	end := func() error {
		if cur == nil {
			return nil
		}
		if err := cur.flush(); err != nil {
			return at(cur.line, err)
		}
		c := cur.main
		if len(c.t.Steps) == 0 && len(cur.side.t.Steps) > 0 {
			c = cur.side
		} else if n := len(cur.side.t.Steps); n > 0 {
			s.Repaired[fixSidechain] += n
		}
		c.t.Group = taskGroup(c.t.Dataset, c.t.Task, c.t.ID)
		return s.put(c.t, cur.line)
	}
	err := each(r, func(v value) error {
		if v.endOfArray() {
			return nil
		}
		var l sessionLine
		if err := v.decode(&l); err != nil {
			return err
		}
		if l.Type == "" {
			return field("type", "is missing: each line of a Claude Code session has one; if this line is of another format: %w", ErrMixed)
		}
		if l.Type != "user" && l.Type != "assistant" {
			s.Repaired[fixNoTurn]++
			return nil
		}
		if l.Message == nil || l.Session == "" {
			return field("message", "or sessionId is missing on a line of type %s: if this line is of another format: %w", l.Type, ErrMixed)
		}
		if cur == nil || l.Session != curID {
			if err := end(); err != nil {
				return err
			}
			cur, curID = newSession(l.Session, v.line, s), l.Session
		}
		// A session is kept in memory until it ends, so it has the bound of a line.
		if cur.size += len(v.raw); cur.size > lines.Max {
			return fmt.Errorf("session %.100q %w: more than %d bytes", l.Session, lines.ErrTooLong, lines.Max)
		}
		return cur.add(&l, s)
	})
	if err == nil {
		err = end()
	}
	return s.finish(err)
}

func newSession(id string, line int, s *sink) *session {
	empty := func() *chat {
		return newChat(&data.Trajectory{ID: "claude-code/" + id, Dataset: "claude-code"}, s)
	}
	return &session{main: empty(), side: empty(), line: line}
}

func (x *session) add(l *sessionLine, s *sink) error {
	if l.Meta || l.Compact {
		s.Repaired[fixMeta]++
		return nil
	}
	c := x.main
	if l.Sidechain {
		c = x.side
	}
	if c.t.Extra == nil && l.CWD != "" {
		raw, err := json.Marshal(l.CWD)
		if err != nil {
			return err
		}
		if err := setExtra(c.t, "cwd", raw); err != nil {
			return err
		}
	}
	bs, err := blocks(l.Message.Content, "message.content")
	if err != nil {
		return err
	}
	if l.Type == "user" {
		if err := x.flush(); err != nil {
			return err
		}
		return c.userBlocks(bs, "message")
	}
	if c.t.AgentModel == "" {
		c.t.AgentModel = l.Message.Model
	}
	if x.on != c || x.id != l.Message.ID || x.id == "" {
		if err := x.flush(); err != nil {
			return err
		}
		x.on, x.id = c, l.Message.ID
	}
	x.blocks = append(x.blocks, bs...)
	return nil
}

// flush hands the gathered assistant message on.
func (x *session) flush() error {
	if x.on == nil {
		return nil
	}
	c, bs := x.on, x.blocks
	x.on, x.blocks, x.id = nil, nil, ""
	return c.assistantBlocks(bs, "message")
}
