package serve

import (
	"errors"
	"fmt"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/decisionlog"
)

// Mode says whether verdicts are enforced.
type Mode = decisionlog.Mode

// The modes.
const (
	Enforce = decisionlog.Enforce
	Audit   = decisionlog.Audit // all is computed and logged, nothing is stopped
)

// Failure says what becomes of a call when the guard cannot judge it.
type Failure string

// The answers to a failure.
const (
	DenyOnError  Failure = "deny"  // fail closed
	AllowOnError Failure = "allow" // fail open
)

// Held says what becomes of a call with the verdict HOLD.
type Held string

// The answers to HOLD.
const (
	AskOnHold   Held = "ask"   // the host asks a person
	DenyOnHold  Held = "deny"  // for hosts and runs without one
	AllowOnHold Held = "allow" // HOLD is only logged
)

// Settings are what turns decisions into actions. They have no defaults here and
// are read from nowhere else: who makes them has decided each.
type Settings struct {
	Mode    Mode
	OnError Failure
	OnHold  Held
}

// ErrSettings is wrapped by the error about settings that are not complete.
var ErrSettings = errors.New("serve: bad settings")

// Validate reports a setting that is missing or unknown.
func (s Settings) Validate() error {
	switch {
	case s.Mode != Enforce && s.Mode != Audit:
		return fmt.Errorf("%w: mode %q: want enforce or audit", ErrSettings, s.Mode)
	case s.OnError != DenyOnError && s.OnError != AllowOnError:
		return fmt.Errorf("%w: on-error %q: want deny or allow", ErrSettings, s.OnError)
	case s.OnHold != AskOnHold && s.OnHold != DenyOnHold && s.OnHold != AllowOnHold:
		return fmt.Errorf("%w: on-hold %q: want ask, deny or allow", ErrSettings, s.OnHold)
	}
	return nil
}

// String is how the settings are printed when an adapter starts.
func (s Settings) String() string {
	open := "fails closed"
	if s.OnError == AllowOnError || s.Mode == Audit {
		open = "fails open"
	}
	return fmt.Sprintf("mode %s, on error %s, on hold %s (%s)", s.Mode, s.OnError, s.OnHold, open)
}

// Action is what is enforced. Stricter actions are larger.
type Action int8

// The actions.
const (
	Allow Action = iota // the call is executed, as far as the guard is concerned
	Ask                 // a person decides
	Deny                // the call is not executed
)

func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
		return "deny"
	}
	return fmt.Sprintf("Action(%d)", int8(a))
}

// MarshalText writes allow, ask or deny.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads allow, ask or deny.
func (a *Action) UnmarshalText(b []byte) error {
	for x := Allow; x <= Deny; x++ {
		if string(b) == x.String() {
			*a = x
			return nil
		}
	}
	return fmt.Errorf("serve: %.20q is no action: want allow, ask or deny", b)
}

// Decision is the guard's word for an action.
func (a Action) Decision() guard.Decision { return guard.Decision(a) }

// Action returns what is done about a decision.
func (s Settings) Action(d guard.Decision) Action {
	switch {
	case s.Mode == Audit || d == guard.Pass:
		return Allow
	case d == guard.Hold && s.OnHold == AskOnHold:
		return Ask
	case d == guard.Hold && s.OnHold == AllowOnHold:
		return Allow
	}
	return Deny
}

// Failed returns what is done about a call that could not be judged.
func (s Settings) Failed() Action {
	if s.Mode == Audit || s.OnError == AllowOnError {
		return Allow
	}
	return Deny
}
