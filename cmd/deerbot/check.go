package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"deerbot/config"
)

// check validates the configuration and tells on stdout what it comes to, or on stderr what is wrong with it.
func check(load config.LoadOptions, stdout, stderr io.Writer) int {
	cfg, err := config.Load(load)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	source := cfg.File
	if source == "" {
		source = "the environment (no file was found)"
	}
	fmt.Fprintf(stdout, "valid: %s\n", source)

	var models []string
	for _, m := range cfg.Models {
		id := m.Provider + ", " + m.Model
		switch {
		case m.Provider == "rehearsal":
			id = m.Provider
		case m.Model == "":
			id = m.Provider + ", the server's first model"
		}
		models = append(models, fmt.Sprintf("%s (%s)", m.Name, id))
	}
	if len(models) == 0 {
		models = []string{"none configured: Ollama on this machine if it answers, else the rehearsal"}
	}
	var channels []string
	for _, name := range cfg.Channels.Names() {
		if cfg.Channels.Active(name) {
			channels = append(channels, name)
		}
	}
	if len(channels) == 0 {
		channels = []string{"none"}
	}
	fmt.Fprintf(stdout, "models: %s\nchannels: %s\n", strings.Join(models, ", "), strings.Join(channels, ", "))
	for _, n := range append(config.Warnings(cfg), config.NotYet(cfg)...) {
		at := ""
		if n.Line > 0 {
			at = fmt.Sprintf("%s:%d: ", cfg.File, n.Line)
		}
		fmt.Fprintf(stdout, "note: %s%s\n", at, n)
	}
	return exitOK
}

// release is set by the linker: -X main.release=v1.2.3.
var release string

// version names the release, else the commit the binary was built from, and what it was built with.
func version() string {
	v, commit, dirty := release, "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && len(s.Value) >= 12:
				commit = s.Value[:12]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+changes"
			}
		}
	}
	switch {
	case v == "" && commit != "":
		v = "dev-" + commit + dirty
	case v == "":
		v = "dev"
	}
	return fmt.Sprintf("%s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
