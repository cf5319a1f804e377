// Package features writes docs/features.md from the registries of the code: what each channel can do, commands, tools,
// providers, the middleware chain and the kinds of events. Its test holds the page to the code.
//
// Nothing is listed twice by hand. Where a registry has no words for people, the first sentence of the Go comment is used.
package features

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// header opens the page.
const header = `# Features

<!-- Made from the registries of the code by "go test ./internal/features -update". Do not edit. -->

What this version can do, as the code itself lists it. What the configuration already knows but this version does not have
is marked *not there yet* in [configuration.md](configuration.md).
`

// dirs are the places that the page is made with.
type dirs struct {
	module  string // the root of the module, where comments are read
	scratch string // an empty directory, for channels that want one
}

// Page writes the whole page. module is the root of the module, scratch an empty directory.
func Page(module, scratch string) (string, error) {
	d := dirs{module, scratch}
	var b strings.Builder
	b.WriteString(header)
	for _, section := range []func(*strings.Builder, dirs) error{
		channelTable, commandTable, toolTable, providerTable, middlewareTable, eventTable,
	} {
		b.WriteString("\n")
		if err := section(&b, d); err != nil {
			return "", fmt.Errorf("features: %w", err)
		}
	}
	return b.String(), nil
}

// table writes a Markdown table.
func table(b *strings.Builder, head []string, rows [][]string) {
	row := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	row(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		row(r)
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// comments maps the types of a package to the first sentence of their comments, without the type's name.
func (d dirs) comments(pkg string) (map[string]string, error) {
	files := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(d.module, pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, p, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	docs, err := doc.NewFromFiles(files, parsed, "deerbot/"+pkg)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, t := range docs.Types {
		for _, spec := range t.Decl.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			text := t.Doc
			if ts.Doc != nil { // one type of a group
				text = ts.Doc.Text()
			}
			first := strings.TrimSuffix(docs.Synopsis(text), ".")
			first = strings.TrimPrefix(strings.TrimPrefix(first, ts.Name.Name+" "), "is ")
			out[ts.Name.Name] = first
		}
	}
	return out, nil
}
