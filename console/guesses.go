package console

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// guesses limits wrong tokens by address. Who has used up the allowance is refused without looking at the token, or the
// limit would slow nobody down; sessions are not touched by it.
type guesses struct {
	now func() time.Time

	mu   sync.Mutex
	from map[netip.Prefix]*rate.Limiter
}

const (
	guessBurst = 10              // wrong tokens in a row
	guessEvery = 2 * time.Second // and one more after this
	maxGuesser = 4096            // addresses remembered; when there are more, all are forgotten
)

// open reports whether the sender of r may try a token.
func (g *guesses) open(r *http.Request) bool { return g.limiter(r).TokensAt(g.now()) >= 1 }

// wrong counts a wrong token.
func (g *guesses) wrong(r *http.Request) { g.limiter(r).AllowN(g.now(), 1) }

func (g *guesses) limiter(r *http.Request) *rate.Limiter {
	var key netip.Prefix
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		addr, bits := ap.Addr().Unmap(), 32
		if addr.Is6() {
			bits = 64 // one customer's network
		}
		key, _ = addr.WithZone("").Prefix(bits)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.from[key]
	if l == nil {
		if g.from == nil || len(g.from) >= maxGuesser {
			g.from = map[netip.Prefix]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
		g.from[key] = l
	}
	return l
}
