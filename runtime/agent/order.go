package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
)

// Chain is middleware in its final order. It is safe for concurrent use when its middleware is.
type Chain struct {
	log  *slog.Logger
	list []link
}

type link struct {
	Middleware
	spec Spec
}

// Entry describes one middleware of a chain.
type Entry struct {
	Spec
	Hooks []string
}

// String names the phase.
func (p Phase) String() string {
	names := []string{"sanitise", "inject", "guard", "transport", "observe"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("phase(%d)", int(p))
	}
	return names[p]
}

// hook is one kind of hook: whether a middleware has it, and which surfaces it can reach.
type hook struct {
	name    string
	has     func(Middleware) bool
	reaches []Surface
}

var hooks = []hook{
	{"BeforeRun", is[BeforeRunHook], []Surface{SurfaceState}},
	{"BeforeModel", is[BeforeModelHook], []Surface{SurfaceMessages, SurfaceSystem, SurfaceTools, SurfaceState}},
	{"WrapModel", is[WrapModelHook], []Surface{SurfaceMessages, SurfaceSystem, SurfaceTools, SurfaceResponse, SurfaceUsage, SurfaceState}},
	{"AfterModel", is[AfterModelHook], []Surface{SurfaceResponse, SurfaceUsage, SurfaceState}},
	{"WrapTool", is[WrapToolHook], []Surface{SurfaceToolResult, SurfaceState}},
	{"AfterRun", is[AfterRunHook], []Surface{SurfaceState}},
}

func is[T any](m Middleware) bool {
	_, ok := m.(T)
	return ok
}

func hooksOf(m Middleware) []string {
	var out []string
	for _, h := range hooks {
		if h.has(m) {
			out = append(out, h.name)
		}
	}
	return out
}

// NewChain puts middleware in order: by phase, then by the declared edges, else as given. It joins all faults: names that
// are missing or used twice, an unknown phase or failure policy, a middleware without hooks, an edge against the phases, a
// cycle, and two middlewares that change the same surface in the same hook though nothing says which goes first.
func NewChain(log *slog.Logger, ms ...Middleware) (*Chain, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	links := make([]link, 0, len(ms))
	index := map[string]int{}
	var errs []error
	for _, m := range ms {
		l := link{Middleware: m, spec: m.Spec()}
		if err := checkSpec(l); err != nil {
			errs = append(errs, err)
			continue
		}
		if _, dup := index[l.spec.Name]; dup {
			errs = append(errs, fmt.Errorf("middleware %s: the name is used twice", l.spec.Name))
			continue
		}
		index[l.spec.Name] = len(links)
		links = append(links, l)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	g, err := newGraph(links, index)
	if err != nil {
		return nil, err
	}
	order, err := g.sort()
	if err != nil {
		return nil, err
	}
	if err := g.conflicts(); err != nil {
		return nil, err
	}
	c := &Chain{log: log, list: make([]link, len(order))}
	for i, n := range order {
		c.list[i] = links[n]
	}
	return c, nil
}

func checkSpec(l link) error {
	s := l.spec
	switch {
	case s.Name == "":
		return fmt.Errorf("middleware %T: no name", l.Middleware)
	case s.Phase < PhaseSanitise || s.Phase > PhaseObserve:
		return fmt.Errorf("middleware %s: unknown phase %d", s.Name, s.Phase)
	case s.OnFailure != Open && s.OnFailure != Closed:
		return fmt.Errorf("middleware %s: unknown failure policy %q", s.Name, s.OnFailure)
	case len(hooksOf(l.Middleware)) == 0:
		return fmt.Errorf("middleware %s: no hooks", s.Name)
	}
	return nil
}

// graph holds the declared edges: next[a] are those that a stands before.
type graph struct {
	links []link
	next  [][]int
}

func newGraph(links []link, index map[string]int) (*graph, error) {
	g := &graph{links: links, next: make([][]int, len(links))}
	var errs []error
	edge := func(from, to int, by string) {
		a, b := links[from].spec, links[to].spec
		if a.Phase > b.Phase {
			errs = append(errs, fmt.Errorf("middleware %s: it wants %s (%s) before %s (%s), which the phases forbid",
				by, a.Name, a.Phase, b.Name, b.Phase))
			return
		}
		if !slices.Contains(g.next[from], to) {
			g.next[from] = append(g.next[from], to)
		}
	}
	for i, l := range links {
		for _, name := range l.spec.Before {
			if j, ok := index[name]; ok {
				edge(i, j, l.spec.Name)
			}
		}
		for _, name := range l.spec.After {
			if j, ok := index[name]; ok {
				edge(j, i, l.spec.Name)
			}
		}
	}
	return g, errors.Join(errs...)
}

// sort returns the order, or an error that names a cycle.
func (g *graph) sort() ([]int, error) {
	waits := make([]int, len(g.links))
	for _, to := range g.next {
		for _, j := range to {
			waits[j]++
		}
	}
	free := make([]int, 0, len(g.links))
	for i, n := range waits {
		if n == 0 {
			free = append(free, i)
		}
	}
	var out []int
	for len(free) > 0 {
		i := slices.MinFunc(free, func(a, b int) int {
			return cmp.Or(cmp.Compare(g.links[a].spec.Phase, g.links[b].spec.Phase), cmp.Compare(a, b))
		})
		free = slices.DeleteFunc(free, func(j int) bool { return j == i })
		out = append(out, i)
		for _, j := range g.next[i] {
			if waits[j]--; waits[j] == 0 {
				free = append(free, j)
			}
		}
	}
	if len(out) < len(g.links) {
		return nil, fmt.Errorf("middleware: the order is a cycle: %s", strings.Join(g.cycle(), " before "))
	}
	// An edge never leads to an earlier phase, so what waits in a phase waits for that phase: the order keeps phases whole.
	return out, nil
}

// cycle returns the names along one cycle, the first repeated at the end.
func (g *graph) cycle() []string {
	const onPath, done = 1, 2
	state := make([]int, len(g.links))
	var path []int
	var found []string
	var visit func(int) bool
	visit = func(i int) bool {
		state[i] = onPath
		path = append(path, i)
		for _, j := range g.next[i] {
			if state[j] == onPath {
				for _, k := range append(path[slices.Index(path, j):], j) {
					found = append(found, g.links[k].spec.Name)
				}
				return true
			}
			if state[j] == 0 && visit(j) {
				return true
			}
		}
		state[i] = done
		path = path[:len(path)-1]
		return false
	}
	for i := range g.links {
		if state[i] == 0 && visit(i) {
			break
		}
	}
	return found
}

// conflicts finds pairs whose order matters and is left to chance.
func (g *graph) conflicts() error {
	var errs []error
	for i, a := range g.links {
		for j := i + 1; j < len(g.links); j++ {
			b := g.links[j]
			if a.spec.Phase != b.spec.Phase || g.reaches(i, j) || g.reaches(j, i) {
				continue
			}
			for _, h := range hooks {
				if !h.has(a.Middleware) || !h.has(b.Middleware) {
					continue
				}
				for _, s := range h.reaches {
					if slices.Contains(a.spec.Mutates, s) && slices.Contains(b.spec.Mutates, s) {
						errs = append(errs, fmt.Errorf("middleware %s and %s both change %s in %s and nothing says which goes first",
							a.spec.Name, b.spec.Name, s, h.name))
					}
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (g *graph) reaches(from, to int) bool {
	for _, n := range g.next[from] {
		if n == to || g.reaches(n, to) {
			return true
		}
	}
	return false
}

// Print writes what Describe returned as a table for people: the order, then for each middleware its hooks, edges,
// surfaces and what its failure does.
func Print(w io.Writer, list []Entry) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tNAME\tPHASE\tHOOKS\tON FAILURE\tBEFORE\tAFTER\tOBSERVES\tMUTATES")
	for i, e := range list {
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, e.Name, e.Phase, join(e.Hooks), e.OnFailure,
			join(e.Before), join(e.After), join(e.Observes), join(e.Mutates))
	}
	fmt.Fprintln(tw)
	for _, e := range list {
		fmt.Fprintf(tw, "%s: %s\n", e.Name, e.Why)
	}
	return tw.Flush()
}

func join[S ~string](list []S) string {
	if len(list) == 0 {
		return "-"
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ",")
}

// Describe lists the chain in order.
func (c *Chain) Describe() []Entry {
	out := make([]Entry, len(c.list))
	for i, l := range c.list {
		out[i] = Entry{Spec: l.spec, Hooks: hooksOf(l.Middleware)}
	}
	return out
}
