package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// DefaultFile is the file that is read when none is named, if it exists.
const DefaultFile = "config.yaml"

// LoadOptions says where a configuration comes from.
type LoadOptions struct {
	// Path is the file to read. Empty: $DEERBOT_CONFIG, else ./config.yaml if there is one, else the environment alone.
	Path string
	// Env looks up environment variables; nil is os.LookupEnv.
	Env func(string) (string, bool)
	// Dir is where ./config.yaml is looked for; "" is the working directory.
	Dir string
	// ReadFile reads the file; nil is os.ReadFile.
	ReadFile func(string) ([]byte, error)
}

// Find returns the file that these options lead to, "" for the environment alone.
func (o LoadOptions) Find() string {
	if o.Path != "" {
		return o.Path
	}
	env := o.env()
	if p, ok := env("DEERBOT_CONFIG"); ok && strings.TrimSpace(p) != "" {
		return strings.TrimSpace(p)
	}
	p := DefaultFile
	if o.Dir != "" {
		p = filepath.Join(o.Dir, DefaultFile)
	}
	if _, err := os.Stat(p); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return p
	}
	return ""
}

func (o LoadOptions) env() func(string) (string, bool) {
	if o.Env != nil {
		return o.Env
	}
	return os.LookupEnv
}

// Load reads, expands, completes and validates the configuration. Everything that is wrong is in the error, which is a
// [Faults] unless the file cannot be read at all; no value of the file is in it. Models is empty when neither the file
// nor the environment names one: see [DefaultModels].
func Load(o LoadOptions) (*Config, error) {
	path := o.Find()
	if path == "" {
		return parse(nil, "", o.env())
	}
	read := o.ReadFile
	if read == nil {
		read = os.ReadFile
	}
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return parse(data, path, o.env())
}

// parse makes a configuration of a file's content and the environment.
func parse(data []byte, file string, env func(string) (string, bool)) (*Config, error) {
	cfg := Default()
	cfg.File = file
	d := &decoder{file: file, env: env, lines: map[string]int{}, anchors: map[string]ast.Node{}}
	d.decode(data, cfg)
	cfg.lines = d.lines
	fillFromEnv(cfg, env)
	d.faults = append(d.faults, validate(cfg, d.faulty)...)
	if len(d.faults) > 0 {
		return nil, d.faults
	}
	return cfg, nil
}

// faulty reports whether there is a fault at key already, so that one mistake is told once.
func (d *decoder) faulty(key string) bool {
	for _, f := range d.faults {
		if f.Key == key {
			return true
		}
	}
	return false
}
