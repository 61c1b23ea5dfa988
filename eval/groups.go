package eval

import (
	"encoding/json"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/guard"
)

// Field returns what a run says in the field of that name: dataset, suite, group,
// agent_model, user_task, or any field of the source that holds a text. Fields
// that are known only afterwards, such as the label, are none. ok is false where
// the run has no such field or an empty one.
func Field(t *data.Trajectory, name string) (value string, ok bool) {
	switch name {
	case "dataset":
		value = t.Dataset
	case "suite":
		value = t.Suite
	case "group":
		value = t.Group
	case "agent_model":
		value = t.AgentModel
	case "user_task":
		value = t.UserTask
	default:
		if json.Unmarshal(t.Extra[name], &value) != nil { // absent, or no text
			return "", false
		}
	}
	return value, value != ""
}

// Path returns a run's values of the named fields, "" where it has none.
func Path(t *data.Trajectory, by []string) []string {
	if len(by) == 0 {
		return nil
	}
	path := make([]string, len(by))
	for i, name := range by {
		path[i], _ = Field(t, name)
	}
	return path
}

// ModelFor returns m with the levels of the run's group, where its calibration has
// groups: what judges a recorded run starts its session on this one.
func ModelFor(m *guard.Model, t *data.Trajectory) *guard.Model {
	c := m.Calibration()
	if c == nil || len(c.By) == 0 {
		return m
	}
	return m.InGroup(Path(t, c.By)...)
}
