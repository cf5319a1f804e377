package web

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of structure that is kept. Markdown writes the marks of each level on every line of it and fills rows to
// equal length, so a small page could unfold into gigabytes.
const (
	maxNesting = 12     // lists, quotations, tables and emphasis in one another
	maxCells   = 20_000 // rows times columns of a table
	maxWork    = 60e6   // nodes and bytes of text, each times its depth; the libraries look at each from all levels above
)

// tidy removes what nobody can see or read, makes links absolute, and takes structure back where it goes too far.
func tidy(doc *html.Node, at *url.URL) { tidyChildren(doc, at, 0) }

func tidyChildren(n *html.Node, at *url.URL, nesting int) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if unseen(c) {
			n.RemoveChild(c)
			c = next
			continue
		}
		attrs := c.Attr[:0]
		for _, a := range c.Attr {
			switch a.Key {
			case "colspan", "rowspan": // a number of cells that the page need not hold
				continue
			case "href", "src":
				a.Val = absolute(at, a.Val)
			}
			attrs = append(attrs, a)
		}
		c.Attr = attrs
		below := nesting
		if nests(c) {
			if below++; below > maxNesting || c.DataAtom == atom.Table && cells(c) > maxCells {
				flatten(c)
				below = nesting
			}
		}
		tidyChildren(c, at, below)
		c = next
	}
}

// work is what converting below n costs, at depth.
func work(n *html.Node, depth int) int {
	total := 0
	for c := range n.ChildNodes() {
		total += depth * (50 + len(c.Data))
		total += work(c, depth+1)
	}
	return total
}

// nests reports elements that mark each line below them.
func nests(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.B, atom.Strong, atom.I, atom.Em, atom.S, atom.Del, atom.U,
		atom.Code, atom.Pre, atom.Kbd, atom.Samp, atom.Tt, atom.Var:
		return true
	}
	return false
}

// cells is rows times columns.
func cells(table *html.Node) int {
	rows, cols := 0, 0
	for n := range table.Descendants() {
		if n.DataAtom != atom.Tr {
			continue
		}
		rows++
		k := 0
		for range n.ChildNodes() {
			k++
		}
		cols = max(cols, k)
	}
	return rows * cols
}

// flatten makes an element, and the parts of a table with it, plain containers.
func flatten(n *html.Node) {
	if n.DataAtom == atom.Table {
		for d := range n.Descendants() {
			switch d.DataAtom {
			case atom.Tr, atom.Td, atom.Th, atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption, atom.Colgroup, atom.Col, atom.Table:
				d.DataAtom, d.Data = atom.Div, "div"
			}
		}
	}
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Pre:
		n.DataAtom, n.Data = atom.Div, "div"
	default:
		n.DataAtom, n.Data = atom.Span, "span"
	}
}

func unseen(n *html.Node) bool {
	if n.Type == html.CommentNode {
		return true
	}
	if n.Type != html.ElementNode {
		return false
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Embed, atom.Canvas,
		atom.Button, atom.Select, atom.Input, atom.Textarea, atom.Dialog:
		return true
	case atom.Form: // whole pages stand in a form with some frameworks
		return textLen(n) < 2000
	case atom.Img:
		src := strings.TrimSpace(attr(n, "src"))
		return src == "" || strings.HasPrefix(strings.ToLower(src), "data:")
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			s := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// absolute resolves a link; "" for one that leads nowhere on the web.
func absolute(at *url.URL, link string) string {
	u, err := at.Parse(strings.TrimSpace(link))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return u.String()
}
