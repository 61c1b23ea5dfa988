package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis keeps sessions in a Redis server, which may serve several processes and
// outlive them. What an answer acknowledged is written; whether it survives a crash
// of Redis is a matter of its configuration (appendonly yes, appendfsync always).
//
// A session is one key, which expires; a sorted set orders them by their last use.
// A change is written only if the session is still what was read: of two processes
// that change it at once, one begins again.
type Redis struct {
	c      *redis.Client
	prefix string
	most   int
	ttl    time.Duration
	resume func(*Session, []byte) error // set by New

	locks [256]sync.Mutex // by id: requests of this process wait for each other
}

// maxTries is how often a change is begun anew.
const maxTries = 8

// NewRedis returns a store in the server of a URL such as
// redis://:password@127.0.0.1:6379/0. It connects with the first request, and again
// after each failure.
func NewRedis(url string, most int, ttl time.Duration) (*Redis, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err) // redis does not repeat the URL, which may hold a password
	}
	if most <= 0 {
		most = DefaultSessions
	}
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries = time.Second, 2*time.Second, 2*time.Second, 1
	o.DisableIdentity = true
	return &Redis{c: redis.NewClient(o), prefix: "dreamguard:v1:", most: most, ttl: ttl}, nil
}

// Close ends the connections.
func (r *Redis) Close() error { return r.c.Close() }

// TTL implements [Store].
func (r *Redis) TTL() time.Duration { return r.ttl }

func (r *Redis) key(id string) string { return r.prefix + "session:" + id }
func (r *Redis) index() string        { return r.prefix + "sessions" }

func storeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// Check implements [Store].
func (r *Redis) Check(ctx context.Context) error { return storeError(r.c.Ping(ctx).Err()) }

// Durable reports whether Redis writes each change to its disk before it answers, as
// far as it says so.
func (r *Redis) Durable(ctx context.Context) (bool, error) {
	m, err := r.c.ConfigGet(ctx, "append*").Result()
	return m["appendonly"] == "yes" && m["appendfsync"] == "always", storeError(err)
}

// create adds a session if there is none of its id and room for it.
var create = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3])
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return 2 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[4])
return 0`)

// replace writes a session if it is still what was read.
var replace = redis.NewScript(`
local old = redis.call('GET', KEYS[1])
if not old then return 1 end
if old ~= ARGV[1] then return 2 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
return 0`)

// Create implements [Store].
func (r *Redis) Create(ctx context.Context, s *Session) error {
	b, err := s.marshal()
	if err != nil {
		return err
	}
	now := time.Now()
	n, err := create.Run(ctx, r.c, []string{r.key(s.ID), r.index()}, b, now.UnixMilli(), now.Add(-r.ttl).UnixMilli(), s.ID, r.most, r.ttl.Milliseconds()).Int()
	switch {
	case err != nil:
		return storeError(err)
	case n == 1:
		return ErrExists
	case n == 2:
		return ErrFull
	}
	return nil
}

func (r *Redis) lock(id string) *sync.Mutex {
	sum := sha256.Sum256([]byte(id))
	return &r.locks[sum[0]]
}

// Update implements [Store].
func (r *Redis) Update(ctx context.Context, id string, f func(*Session) error) (err error) {
	l := r.lock(id)
	l.Lock()
	defer l.Unlock()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p) // nothing was written
		}
	}()
	for range maxTries {
		old, err := r.c.Get(ctx, r.key(id)).Bytes()
		if errors.Is(err, redis.Nil) {
			return ErrNoSession
		}
		if err != nil {
			return storeError(err)
		}
		s, err := unmarshal(old, r.resume)
		if err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
		said := f(s)
		b, err := s.marshal()
		if err != nil {
			return errors.Join(said, err)
		}
		n, err := replace.Run(ctx, r.c, []string{r.key(id), r.index()}, old, b, time.Now().UnixMilli(), id, r.ttl.Milliseconds()).Int()
		switch {
		case err != nil:
			return storeError(err)
		case n == 1:
			return ErrNoSession
		case n == 0:
			return said
		}
	}
	return ErrConflict
}

// Remove implements [Store].
func (r *Redis) Remove(ctx context.Context, id string) (*Session, error) {
	b, err := r.c.GetDel(ctx, r.key(id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, ErrNoSession
	}
	if err == nil {
		err = r.c.ZRem(ctx, r.index(), id).Err()
	}
	if err != nil {
		return nil, storeError(err)
	}
	return unmarshal(b, r.resume)
}

// List implements [Store].
func (r *Redis) List(ctx context.Context, most int, f func(*Session)) (int, error) {
	since := strconv.FormatInt(time.Now().Add(-r.ttl).UnixMilli(), 10)
	n, err := r.c.ZCount(ctx, r.index(), since, "+inf").Result()
	if err != nil || most <= 0 {
		return int(n), storeError(err)
	}
	ids, err := r.c.ZRangeArgs(ctx, redis.ZRangeArgs{Key: r.index(), Start: since, Stop: "+inf", ByScore: true, Rev: true, Count: int64(most)}).Result()
	if err != nil {
		return 0, storeError(err)
	}
	for _, id := range ids {
		b, err := r.c.Get(ctx, r.key(id)).Bytes()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return 0, storeError(err)
		}
		if s, err := unmarshal(b, r.resume); err == nil {
			f(s)
		}
	}
	return int(n), nil
}

// Sweep implements [Store]. Redis itself has taken out what has expired, so nobody
// is told; only the order of use is tidied up.
func (r *Redis) Sweep(ctx context.Context, _ func(*Session)) error {
	return storeError(r.c.ZRemRangeByScore(ctx, r.index(), "-inf", strconv.FormatInt(time.Now().Add(-r.ttl).UnixMilli(), 10)).Err())
}
