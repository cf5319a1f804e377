package cards

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Discord's limits. A message has 2000 characters, counted with its markup; what is left of them is for what the server
// may count otherwise.
const (
	DiscordLimit = 2000
	discordRoom  = 1900
	discordStop  = 16 << 10 // bytes after which a rendering is too long anyway, and not gone on with
)

// zeroWidth stands where a mark of Discord must not be recognised and a backslash does not help.
const zeroWidth = "\u200b"

// Discord renders Discord's Markdown. It has headings of three levels, lists, quotes and fences of its own; text is
// escaped so that it shows as written, and what would notify people is taken apart.
func Discord() Dialect {
	return &dialect{
		name: "discord", format: "markdown", lower: true,
		room:   size{units: discordRoom, marks: 1 << 30, bytes: 1 << 30, plain: DiscordLimit},
		render: renderDiscord,
	}
}

func renderDiscord(b []byte, bs []block) ([]byte, size) {
	w := discordWriter{b: b, from: len(b), start: true}
	w.blocks(bs, 0)
	w.sync(nil)
	n := unitsOf(w.b[w.from:])
	return w.b, size{units: n, bytes: len(w.b) - w.from}
}

// discordWriter writes lines. Marks are opened when text follows and closed before white space and at the end of a line,
// because Discord shows a mark beside white space as it is.
type discordWriter struct {
	b          []byte
	from       int
	want, have []string
	pending    []byte // white space that is not written yet
	prefix     string // of every line
	start      bool   // nothing visible is on the line yet
	quoted     bool   // in a quote
	inLink     bool
	number     bool // the line has digits only so far
	closed     int  // where b ended when a mark was closed last
}

func (w *discordWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *discordWriter) over() bool { return len(w.b)-w.from > discordStop }

// sync closes and opens marks until those of want are open.
func (w *discordWriter) sync(want []string) {
	n := 0
	for n < len(want) && n < len(w.have) && want[n] == w.have[n] {
		n++
	}
	w.closeTo(n)
	w.b = append(w.b, w.pending...)
	w.pending = w.pending[:0]
	for _, m := range want[n:] {
		if w.closed == len(w.b) && w.closed > w.from { // two marks side by side would be read as one
			w.raw(zeroWidth)
		}
		w.raw(m)
		w.have = append(w.have, m)
	}
}

// closeTo closes all marks but the first n, before the white space that waits.
func (w *discordWriter) closeTo(n int) {
	if len(w.have) <= n {
		return
	}
	for k := len(w.have) - 1; k >= n; k-- {
		w.raw(w.have[k])
	}
	w.have = w.have[:n]
	w.closed = len(w.b)
}

// newline ends the line.
func (w *discordWriter) newline() {
	w.pending = w.pending[:0]
	w.sync(nil)
	w.raw("\n")
	w.raw(w.prefix)
	w.start, w.number = true, false
}

// text writes s as it is to be read.
func (w *discordWriter) text(s string) {
	for i := 0; i < len(s) && !w.over(); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			w.newline()
			i += n
			continue
		}
		if unicode.IsSpace(r) {
			if !w.start || len(w.have) > 0 {
				w.pending = append(w.pending, s[i:i+n]...)
			}
			if w.number { // "1 ." is no list
				w.number = false
			}
			i += n
			continue
		}
		w.sync(w.want)
		w.escape(r, s[i:i+n], s[i+n:])
		i += n
	}
}

// escape writes one character of text; after is what follows it.
func (w *discordWriter) escape(r rune, s, after string) {
	switch r {
	case '\\', '*', '_', '~', '`', '|', '[', ']':
		w.raw(`\`)
	case '<':
		w.raw(`\`)
		if after != "" && (after[0] == '@' || after[0] == '#') { // servers look for these without reading backslashes
			w.raw("<" + zeroWidth)
			w.start, w.number = false, false
			return
		}
	case '#', '-', '+', '>':
		if w.start {
			w.raw(`\`)
		}
	case '.', ')':
		if w.number {
			w.raw(`\`)
		}
	case '/':
		if n := len(w.b); strings.HasPrefix(after, "/") && n > 0 && w.b[n-1] == ':' { // no link of its own making
			w.raw(`\`)
		}
	case '@':
		if mentions(after) {
			w.raw("@" + zeroWidth)
			w.start, w.number = false, false
			return
		}
	}
	w.raw(s)
	w.number = (w.start || w.number) && r >= '0' && r <= '9'
	w.start = false
}

// mentions reports whether "@" before s would notify everybody.
func mentions(s string) bool {
	for _, all := range []string{"everyone", "here"} {
		if len(s) >= len(all) && strings.EqualFold(s[:len(all)], all) {
			return true
		}
	}
	return false
}

// verbatim writes s without escaping, as visible text.
func (w *discordWriter) verbatim(s string) {
	w.raw(s)
	w.start, w.number = false, false
}

func (w *discordWriter) inlines(in []inline) {
	for i := range in {
		if w.over() {
			return
		}
		switch n := &in[i]; n.kind {
		case inText:
			w.text(n.text)
		case inBreak:
			w.newline()
		case inCode:
			w.code(n.text)
		case inStrong:
			w.span("**", n.kids)
		case inEm:
			w.span("*", n.kids)
		case inUnder:
			w.span("__", n.kids)
		case inDel:
			w.span("~~", n.kids)
		case inLink:
			w.link(n.href, n.kids)
		case inImage:
			text := n.text
			if !visibleText(text) {
				text = n.href
			}
			w.link(n.href, []inline{textOf(text)})
		}
	}
}

func (w *discordWriter) span(mark string, kids []inline) {
	if slices.Contains(w.want, mark) {
		w.inlines(kids)
		return
	}
	w.want = append(w.want, mark)
	w.inlines(kids)
	w.want = w.want[:len(w.want)-1]
	w.closeTo(len(w.want))
}

// code writes a code span. A fence of three is Discord's for blocks, so longer runs in the code are taken apart.
func (w *discordWriter) code(s string) {
	s = strings.ReplaceAll(s, "\n", " ")
	if !visibleText(s) || w.inLink {
		w.text(s)
		return
	}
	w.sync(w.want)
	mark, pad := "`", ""
	if strings.Contains(s, "`") {
		mark = "``"
		s = breakTicks(s)
		if s[0] == '`' || s[len(s)-1] == '`' {
			pad = " "
		}
	}
	if n := len(w.b); n > w.from && w.b[n-1] == '`' { // two spans side by side
		w.raw(zeroWidth)
	}
	w.verbatim(mark + pad + s + pad + mark)
}

// breakTicks takes runs of backticks apart.
func breakTicks(s string) string {
	for strings.Contains(s, "``") {
		s = strings.ReplaceAll(s, "``", "`"+zeroWidth+"`")
	}
	return s
}

// discordTarget is href as Discord takes it in brackets, "" when it does not.
func discordTarget(href string) string {
	if !safeTarget(href, "http://", "https://") {
		return ""
	}
	var b strings.Builder
	for _, c := range []byte(strings.TrimSpace(href)) {
		switch {
		case c <= ' ' || c == 0x7F:
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c)+0x100, 16)[1:]))
		case strings.IndexByte("()<>[]\\`*|\"", c) >= 0:
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c), 16)))
		default:
			b.WriteByte(c)
		}
	}
	s := b.String()
	// Discord knows the schemes in small letters only.
	scheme, rest, _ := strings.Cut(s, "://")
	return strings.ToLower(scheme) + "://" + rest
}

func (w *discordWriter) link(href string, kids []inline) {
	text := plainText(kids)
	target := discordTarget(href)
	switch {
	case w.inLink || target == "":
		w.inlines(kids)
		if !w.inLink {
			w.text(targetAfter(text, href))
		}
	case targetAfter(text, href) == "": // the text is the address
		w.sync(w.want)
		w.verbatim("<" + target + ">")
	case strings.ContainsAny(text, "[]\n") || strings.Contains(text, "://") || !visibleText(text):
		// Discord shows no link whose text has brackets or looks like another address.
		w.inlines(kids)
		w.text(" (")
		w.sync(w.want)
		w.verbatim("<" + target + ">)")
	default:
		w.sync(w.want)
		// Marks opened for the link's text are inside its brackets.
		w.verbatim("[")
		outer, open := w.want, w.have
		w.want, w.have, w.inLink = nil, nil, true
		w.inlines(kids)
		w.pending = w.pending[:0]
		w.sync(nil)
		w.want, w.have, w.inLink = outer, open, false
		w.verbatim("](" + target + ")")
	}
}

// blocks writes bs; list is how deep in lists they are.
func (w *discordWriter) blocks(bs []block, list int) {
	for i := range bs {
		if w.over() {
			return
		}
		if i > 0 {
			w.gap(&bs[i-1], &bs[i], list)
		}
		w.block(&bs[i], list)
	}
}

func (w *discordWriter) gap(a, b *block, list int) {
	snug := b.snug && b.kind != blockPara && b.kind != blockHeading
	if list == 0 && a.kind != blockHeading && !snug {
		w.newline()
	}
	w.newline()
}

func (w *discordWriter) block(b *block, list int) {
	switch b.kind {
	case blockPara:
		w.inlines(b.inls)
	case blockHeading:
		w.heading(b, list)
	case blockRule:
		w.text(rule)
	case blockCode:
		w.fence(b.lang, b.text)
	case blockTable:
		text, ok := b.table.aligned()
		if !ok { // lowerTables was not asked: never empty-handed
			w.blocks(b.table.lines(), list)
			return
		}
		w.fence("", text)
	case blockQuote:
		w.quote(b, list)
	case blockList:
		w.list(b, list)
	}
}

// heading writes a heading; below the third level, and in lists, where Discord has none, it is bold.
func (w *discordWriter) heading(b *block, list int) {
	if list > 0 || b.level > 3 || !w.start {
		w.span("**", b.inls)
		return
	}
	w.verbatim(strings.Repeat("#", b.level) + " ")
	for i := range b.inls {
		if b.inls[i].kind == inBreak {
			w.text(" ")
			continue
		}
		w.inlines(b.inls[i : i+1])
	}
}

// quote writes a quote. Discord has one level of them, and none in lists: others show their mark.
func (w *discordWriter) quote(b *block, list int) {
	saved := w.prefix
	if w.quoted || list > 0 {
		w.verbatim(`\> `)
		w.prefix += `\> `
		w.start = true
		w.blocks(b.kids, list)
		w.prefix = saved
		return
	}
	w.quoted = true
	w.raw("> ")
	w.prefix += "> "
	w.start = true
	w.blocks(b.kids, list)
	w.prefix, w.quoted = saved, false
}

// fence writes a code block, which begins at the margin: Discord would take an indentation for code.
func (w *discordWriter) fence(lang, text string) {
	w.pending = w.pending[:0]
	w.sync(nil)
	margin := ""
	if w.quoted {
		margin = "> "
	}
	if w.start { // take the indentation back
		at := len(w.b)
		for at > w.from && w.b[at-1] != '\n' {
			at--
		}
		w.b = append(w.b[:at], margin...)
	}
	text = breakTicks3(text)
	if strings.Trim(text, "\n") == "" {
		text = " "
	}
	w.raw("```" + lang + "\n" + margin)
	w.raw(strings.ReplaceAll(text, "\n", "\n"+margin))
	w.raw("\n" + margin + "```")
	w.start, w.number = false, false
}

// breakTicks3 takes what would end a block apart.
func breakTicks3(s string) string {
	for strings.Contains(s, "```") {
		s = strings.ReplaceAll(s, "```", "``"+zeroWidth+"`")
	}
	if strings.HasSuffix(s, "`") {
		s += zeroWidth
	}
	return s
}

func (w *discordWriter) list(b *block, depth int) {
	saved := w.prefix
	for i := range b.items {
		it := &b.items[i]
		if w.over() {
			break
		}
		if i > 0 {
			w.newline()
		}
		marker := "- "
		if b.ordered {
			marker = strconv.Itoa(b.start+i) + ". "
		}
		if it.cont {
			marker = ""
		}
		w.verbatim(marker)
		w.start = true
		switch it.task {
		case taskOpen:
			w.verbatim("☐ ")
		case taskDone:
			w.verbatim("☑ ")
		}
		w.prefix = saved + strings.Repeat(" ", min(len(marker), 4))
		if len(it.kids) > 0 {
			if k := it.kids[0].kind; k != blockPara && k != blockHeading {
				w.newline()
			}
		}
		w.blocks(it.kids, depth+1)
		w.prefix = saved
	}
}
