package httpapi

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits are limits of rate, one for each client. The oldest are forgotten.
type limits struct {
	rate  rate.Limit
	burst int

	mu   sync.Mutex
	list map[string]*limit
}

type limit struct {
	*rate.Limiter
	used time.Time
}

const maxClients = 4096

func newLimits(perSecond, burst float64) *limits {
	return &limits{rate: rate.Limit(perSecond), burst: max(1, int(burst)), list: map[string]*limit{}}
}

// allow takes n requests of a client.
func (l *limits) allow(client string, n int, now time.Time) bool {
	if l.rate <= 0 {
		return true
	}
	l.mu.Lock()
	x := l.list[client]
	if x == nil {
		if len(l.list) >= maxClients {
			oldest := ""
			for name, o := range l.list {
				if oldest == "" || o.used.Before(l.list[oldest].used) {
					oldest = name
				}
			}
			delete(l.list, oldest)
		}
		x = &limit{Limiter: rate.NewLimiter(l.rate, l.burst)}
		l.list[client] = x
	}
	x.used = now
	l.mu.Unlock()
	return x.AllowN(now, min(n, l.burst))
}

// addressOf is where a client is, of IPv6 the network of 64 bits that one client
// has to itself.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return p.String()
}
