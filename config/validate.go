package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// validator collects what is wrong with a whole configuration, beyond single values.
type validator struct {
	cfg    *Config
	faults Faults
	known  func(key string) bool
}

func (v *validator) fault(key, format string, args ...any) {
	if v.known(key) || slices.ContainsFunc(v.faults, func(f *Fault) bool { return f.Key == key }) {
		return // one mistake is told once
	}
	f := &Fault{Key: key, Text: fmt.Sprintf(format, args...)}
	// The line is that of the key, or of the nearest section around it that the file has.
	for k := key; k != ""; {
		if line, ok := v.cfg.lines[k]; ok {
			f.File, f.Line = v.cfg.File, line
			break
		}
		k = k[:max(strings.LastIndexAny(k, ".["), 0)]
	}
	v.faults = append(v.faults, f)
}

// validate checks cfg. known tells the keys that have a fault already.
func validate(cfg *Config, known func(string) bool) Faults {
	v := &validator{cfg: cfg, known: known}
	if strings.TrimSpace(cfg.DataDir) == "" {
		v.fault("data_dir", "is empty; name a directory, such as ./data")
	}
	v.server()
	v.models()
	v.channels()
	v.agent()
	v.services()
	return v.faults
}

func (v *validator) server() {
	s := v.cfg.Server
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		v.fault("server.listen", "want host:port, such as 127.0.0.1:8420")
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.fault("server.listen", "want a port from 0 to 65535 after the colon")
	}
	if !loopback(host) && !s.AuthToken.IsSet() {
		v.fault("server.auth_token", "is required because server.listen (%s) can be reached from other machines; "+
			"set a long random text, or listen on 127.0.0.1", s.Listen)
	}
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func (v *validator) models() {
	seen := map[string]int{}
	for i, m := range v.cfg.Models {
		at := fmt.Sprintf("models[%d]", i)
		switch first, twice := seen[m.Name]; {
		case m.Name == "":
			v.fault(at+".name", "is missing; people choose a model by it")
		case strings.ContainsFunc(m.Name, func(r rune) bool { return r <= ' ' || r == '`' || r == 0x7f }):
			v.fault(at+".name", "must not contain white space or backquotes, so that /model can take it")
		case twice:
			v.fault(at+".name", "%q is the name of models[%d] too; names are unique", m.Name, first)
		}
		if _, ok := seen[m.Name]; !ok {
			seen[m.Name] = i
		}
		v.url(at+".base_url", m.BaseURL, true, "http", "https")
		if (m.Provider == "openai" || m.Provider == "anthropic") && m.BaseURL == "" && !m.APIKey.IsSet() {
			v.fault(at+".api_key", "is missing; set it or %s_API_KEY, or name a base_url that needs none",
				strings.ToUpper(m.Provider))
		}
		v.headerValue(at+".api_key", m.APIKey)
		if m.MaxOutputTokens >= m.ContextWindow {
			v.fault(at+".max_output_tokens", "must be less than context_window (%d)", m.ContextWindow)
		}
		for name, value := range m.Headers {
			if !headerName.MatchString(name) {
				v.fault(at+".headers."+name, "is not a valid HTTP header name")
			}
			v.headerValue(at+".headers."+name, value)
		}
	}
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// headerValue refuses secrets that cannot travel in an HTTP header; the failing request would quote them.
func (v *validator) headerValue(key string, s Secret) {
	if strings.ContainsFunc(s.Reveal(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.fault(key, "contains a line break or another control character; paste it again as one line")
	}
}

// token refuses credentials that were not pasted whole or carry something else along.
func (v *validator) token(key string, s Secret) {
	if strings.ContainsFunc(s.Reveal(), func(r rune) bool { return r <= ' ' || r == 0x7f || r == '/' || r == '?' || r == '#' }) {
		v.fault(key, "contains white space or a character that no such token has; paste it again")
	}
}

// url checks a URL; empty is allowed when optional. The value is not repeated, because it may carry a password.
func (v *validator) url(key, s string, optional bool, schemes ...string) {
	if s == "" && optional {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		v.fault(key, "want a URL that starts with %s://", strings.Join(schemes, ":// or "))
	}
}

func (v *validator) agent() {
	a := v.cfg.Agent
	v.modelRef("agent.compaction.model", a.Compaction.Model)
	v.modelRef("agent.goals.model", a.Goals.Model)
	names := map[string]bool{"general-purpose": true, "bash": true}
	for i, c := range a.Subagents.Custom {
		at := fmt.Sprintf("agent.subagents.custom[%d]", i)
		switch {
		case c.Name == "":
			v.fault(at+".name", "is missing")
		case names[c.Name]:
			v.fault(at+".name", "%q is taken; names are unique, and general-purpose and bash are built in", c.Name)
		}
		names[c.Name] = true
		v.modelRef(at+".model", c.Model)
	}
	v.patterns("agent.tools.allow", a.Tools.Allow)
	v.patterns("agent.tools.deny", a.Tools.Deny)
	v.patterns("agent.tools.approve", a.Tools.Approve)
	v.hosts("agent.web.allow", a.Web.Allow)
	v.hosts("agent.web.deny", a.Web.Deny)
	v.url("agent.web.search.base_url", a.Web.Search.BaseURL, true, "http", "https")
	switch s := a.Web.Search; {
	case (s.Provider == "tavily" || s.Provider == "brave") && !s.APIKey.IsSet():
		v.fault("agent.web.search.api_key", "is missing; %s needs one", s.Provider)
	case s.Provider == "searxng" && s.BaseURL == "":
		v.fault("agent.web.search.base_url", "is missing; name your SearXNG")
	}
}

// modelRef wants the name of a configured model. While no model is configured, the names of the environment's models
// are not known yet, and nothing but "" can be right.
func (v *validator) modelRef(key, name string) {
	if name == "" {
		return
	}
	if _, ok := v.cfg.Model(name); !ok {
		v.fault(key, "%q is not the name of a model under models", name)
	}
}

// patterns checks tool patterns: name, or name:glob over the arguments.
func (v *validator) patterns(key string, list []string) {
	for i, p := range list {
		name, glob, _ := strings.Cut(p, ":")
		_, err := path.Match(name, "")
		_, err2 := path.Match(glob, "")
		if strings.TrimSpace(name) == "" || err != nil || err2 != nil {
			v.fault(fmt.Sprintf("%s[%d]", key, i), "want a tool's name or name:glob")
		}
	}
}

var hostPattern = regexp.MustCompile(`^(\*\.)?[^\s/:*?#@]+$`)

func (v *validator) hosts(key string, list []string) {
	for i, h := range list {
		if !hostPattern.MatchString(h) {
			v.fault(fmt.Sprintf("%s[%d]", key, i), "want a host such as example.com or *.example.com, without scheme, port or path")
		}
	}
}

func (v *validator) services() {
	c := v.cfg
	if _, err := time.LoadLocation(c.Schedule.TimeZone); err != nil || c.Schedule.TimeZone == "" {
		v.fault("schedule.time_zone", "want Local, UTC or a name such as Europe/Berlin")
	}
	if c.Store.Driver == "postgres" && !c.Store.DSN.IsSet() {
		v.fault("store.dsn", "is missing; the postgres driver needs it")
	}
	if c.Stream.Driver == "redis" && !c.Stream.URL.IsSet() {
		v.fault("stream.url", "is missing; the redis driver needs it")
	}
	for name, s := range c.MCP.Servers {
		at := "mcp.servers." + name
		switch {
		case s.Command == "" && s.URL == "":
			v.fault(at, "has neither command nor url")
		case s.Command != "" && s.URL != "":
			v.fault(at, "has both command and url; a server is local or remote")
		case s.Type == "stdio" && s.Command == "":
			v.fault(at+".command", "is missing; type stdio needs it")
		case s.Type != "" && s.Type != "stdio" && s.URL == "":
			v.fault(at+".url", "is missing; type %s needs it", s.Type)
		}
		v.url(at+".url", s.URL, true, "http", "https")
	}
	for i, dir := range c.Skills.Dirs {
		if dir == "" {
			v.fault(fmt.Sprintf("skills.dirs[%d]", i), "is empty")
		}
	}
}
