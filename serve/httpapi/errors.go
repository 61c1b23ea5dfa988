package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/serve"
)

// Errors of a store.
var (
	// ErrNoSession: there is no such session, or it has expired.
	ErrNoSession = errors.New("no such session")
	// ErrExists: a session of this id is there.
	ErrExists = errors.New("the session is open already")
	// ErrFull: there are as many sessions as there may be.
	ErrFull = errors.New("too many sessions are open")
	// ErrStore: the store failed, or cannot be reached.
	ErrStore = errors.New("session store")
	// ErrConflict: another process changed the session meanwhile, again and again.
	ErrConflict = errors.New("the session was changed by another process")
)

// failure is an error that a client is told: what HTTP says, a code for programs
// and a sentence for people.
type failure struct {
	status int
	code   string
	text   string
}

func (f *failure) Error() string { return f.text }

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status, code, fmt.Sprintf(format, args...)}
}

// failureOf turns any error into what the client is told. Errors of the inside are
// logged by the caller and not told.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, ErrNoSession):
		return fail(http.StatusNotFound, "no_session", "no such session, or it has expired: start one")
	case errors.Is(err, ErrExists):
		return fail(http.StatusConflict, "session_exists", "a session of this id is open already")
	case errors.Is(err, ErrFull):
		return fail(http.StatusServiceUnavailable, "too_many_sessions", "too many sessions are open: end some")
	case errors.Is(err, ErrConflict):
		return fail(http.StatusServiceUnavailable, "busy", "another server is changing the session: try again")
	case errors.Is(err, ErrStore):
		return fail(http.StatusServiceUnavailable, "store", "the session store cannot be used now")
	case errors.Is(err, errModelGone):
		return fail(http.StatusConflict, "other_model", "the session belongs to a model that is not loaded any more: start a new one")
	case errors.Is(err, serve.ErrAmbiguous):
		return fail(http.StatusBadRequest, "ambiguous", "%v", err)
	case errors.Is(err, guard.ErrEncoder):
		return fail(http.StatusServiceUnavailable, "encoder", "the text encoder failed: commit the call again")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fail(http.StatusServiceUnavailable, "cancelled", "the request ended early")
	}
	return fail(http.StatusInternalServerError, "internal", "the guard failed: its log says why")
}
