package formats

import (
	"strings"

	"github.com/dreamguard/dreamguard/data"
)

// chat builds the steps of a run from the turns of a conversation. All message
// formats mean the same by it; they differ in how they write it down.
type chat struct {
	t    *data.Trajectory
	open map[string]int // call id -> its step, while no result has come
	turn []int          // steps of the last assistant turn without a result, in order
	fix  func(reason string)
}

func newChat(t *data.Trajectory, s *sink) *chat {
	return &chat{t: t, open: map[string]int{}, fix: func(reason string) { s.Repaired[reason]++ }}
}

type call struct{ id, tool, args string }

// user adds a turn of the user: to the task as long as the agent has not
// acted, later as the reply to the agent's last message.
func (c *chat) user(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(c.t.Steps) == 0 {
		c.t.Task = join(c.t.Task, text)
		return
	}
	last := &c.t.Steps[len(c.t.Steps)-1]
	if last.Type != data.Message {
		if text == c.t.Task { // said again by a defence: nothing new
			c.fix(fixRepeat)
			return
		}
		// Only the reply to a message has the user's authority.
		c.t.Steps = append(c.t.Steps, data.Step{Type: data.Message, Result: data.UserPrefix + text})
		c.fix(fixUserTurn)
		return
	}
	if last.Result == "" {
		text = data.UserPrefix + text
	}
	last.Result = join(last.Result, text)
}

// assistant adds a turn of the agent: one step for each call, in order, the
// text with the first; or a message where there is no call.
func (c *chat) assistant(text string, calls []call) {
	c.turn = c.turn[:0]
	if len(calls) == 0 {
		if strings.TrimSpace(text) == "" {
			c.fix(fixEmptyTurn)
			return
		}
		c.t.Steps = append(c.t.Steps, data.Step{Type: data.Message, Text: text})
		return
	}
	for i, x := range calls {
		s := data.Step{Type: data.ToolCall, Tool: x.tool, Args: x.args}
		if i == 0 {
			s.Text = text
		}
		n := len(c.t.Steps)
		c.t.Steps = append(c.t.Steps, s)
		c.turn = append(c.turn, n)
		if x.id != "" {
			c.open[x.id] = n
		}
	}
}

// result adds what a call gave back, its output or its error or both. Without
// an id it belongs to the first call of the last turn that has none yet.
func (c *chat) result(id, output, failure string) {
	n, ok := -1, false
	if id != "" {
		n, ok = c.open[id]
		delete(c.open, id)
	} else if len(c.turn) > 0 {
		n, ok = c.turn[0], true
		c.fix(fixNoID)
	}
	if !ok {
		c.fix(fixOrphan)
		return
	}
	for i, k := range c.turn {
		if k == n {
			c.turn = append(c.turn[:i], c.turn[i+1:]...)
			break
		}
	}
	c.t.Steps[n].Result, c.t.Steps[n].Error = output, failure
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	if b == "" {
		return a
	}
	return a + "\n\n" + b
}
