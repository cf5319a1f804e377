package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"deerbot/runtime/sandbox"
)

const (
	readMax     = 50_000  // characters of content per call
	readMaxFile = 1 << 28 // bytes that are scanned to count lines
	utf16Max    = 4 << 20 // bytes of a UTF-16 file
	binaryProbe = 8_000   // bytes
)

type readFileArgs struct {
	Path      string `json:"path" jsonschema:"absolute path of a text file"`
	StartLine int    `json:"start_line,omitempty" jsonschema:"first line to read, from 1; default 1"`
	EndLine   int    `json:"end_line,omitempty" jsonschema:"last line to read, inclusive; default the last of the file"`
}

func newReadFile() (Tool, error) {
	return New(Spec{
		Name: "read_file",
		Description: "Read a text file, or lines start_line to end_line of it. The first line of the result, in brackets, tells which " +
			"lines of how many follow; the rest is the file's text as it is. At most 50,000 characters come back per call, cut at the " +
			"end of a line; go on with start_line. Binary files are refused with their type.",
		ReadOnly: true, Timeout: fileTimeout, MaxOutput: readMax + 500,
		Line: lineOf(func(a readFileArgs) string {
			switch {
			case a.StartLine > 0 && a.EndLine > 0:
				return fmt.Sprintf("%s %d-%d", a.Path, a.StartLine, a.EndLine)
			case a.StartLine > 0:
				return fmt.Sprintf("%s %d-", a.Path, a.StartLine)
			}
			return a.Path
		}),
	}, readFile, func(s *jsonschema.Schema) {
		limits("start_line", 1, 0)(s)
		limits("end_line", 1, 0)(s)
	})
}

func readFile(ctx context.Context, env *Env, args readFileArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	start, end := max(args.StartLine, 1), args.EndLine
	if end > 0 && end < start {
		return Result{}, fmt.Errorf("end_line (%d) is before start_line (%d)", end, start)
	}
	in, err := env.Files.Open(args.Path)
	if errors.Is(err, sandbox.ErrNotRegular) {
		return Result{}, fmt.Errorf("%w; use ls for a directory", err)
	}
	if err != nil {
		return Result{}, missing(env.Files, args.Path, err)
	}
	defer func() { _ = in.Close() }()
	br := bufio.NewReaderSize(in, 64<<10)
	head, err := br.Peek(binaryProbe)
	if err != nil && !errors.Is(err, io.EOF) {
		return Result{}, err
	}
	var src io.Reader = br
	if order := utf16Order(head); order != nil {
		if src, err = fromUTF16(br, order); err != nil {
			return Result{}, fmt.Errorf("%s: %w", sandbox.Printable(args.Path), err)
		}
	} else if bytes.IndexByte(head, 0) >= 0 {
		size := int64(0)
		if fi, err := in.Stat(); err == nil {
			size = fi.Size()
		}
		return Result{}, fmt.Errorf("%s is a binary file (%s, %s); read_file reads text only",
			sandbox.Printable(args.Path), sandbox.TypeOf(args.Path, head), bytesText(size))
	}
	p, err := readPage(ctx, io.LimitReader(src, readMaxFile), start, end)
	if err != nil {
		return Result{}, err
	}
	if p.total > 0 && start > p.total {
		return Result{}, fmt.Errorf("start_line %d is behind the end: %s has %s", start, sandbox.Printable(args.Path), plural(p.total, "line"))
	}
	return Result{Content: p.String(), Untrusted: untrustedPath(args.Path)}, nil
}

// page is a part of a file.
type page struct {
	text        []byte
	first, last int // lines in text
	total       int // lines of the file
	cut         bool
	cutLine     bool // the only line in text is not whole
}

// String puts the line that tells what it is before the text.
func (p page) String() string {
	if p.total == 0 {
		return "[the file is empty]\n"
	}
	var note string
	text := string(bytes.TrimPrefix(p.text, []byte("\uFEFF")))
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		note = "; not UTF-8, unreadable bytes are shown as \uFFFD"
	}
	switch {
	case p.cutLine:
		note += fmt.Sprintf("; the line is longer than %s characters and cut, look into the rest with grep", count(readMax))
	case p.cut:
		note += fmt.Sprintf("; cut here, go on with start_line=%d", p.last+1)
	}
	return fmt.Sprintf("[lines %s-%s of %s%s]\n%s", count(p.first), count(p.last), count(p.total), note, text)
}

// readPage collects lines start to end, at most readMax characters of them, and counts all lines.
func readPage(ctx context.Context, in io.Reader, start, end int) (page, error) {
	br := bufio.NewReaderSize(in, 64<<10)
	p := page{first: start, last: start - 1}
	var (
		line, runes, lineStart int
		fresh                  = true // the next chunk begins a line
	)
	for {
		chunk, err := br.ReadSlice('\n')
		if len(chunk) > 0 {
			if fresh {
				if line++; line%4096 == 0 && ctx.Err() != nil {
					return p, ctx.Err()
				}
				lineStart = len(p.text)
			}
			fresh = err == nil
			if line >= start && (end == 0 || line <= end) && !p.cut {
				p.last = line
				switch n := utf8.RuneCount(chunk); {
				case runes+n <= readMax:
					p.text, runes = append(p.text, chunk...), runes+n
				case line == start:
					p.cut, p.cutLine = true, true
					p.text = append(p.text, headRunes(chunk, readMax-runes)...)
				default:
					p.cut = true
					p.text, p.last = p.text[:lineStart], line-1
				}
			}
		}
		if err == io.EOF {
			p.total = line
			return p, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return p, err
		}
	}
}

// headRunes is the first n characters of b.
func headRunes(b []byte, n int) []byte {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return b[:i]
}

// utf16Order tells by its byte order mark that a text is UTF-16.
func utf16Order(head []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return binary.BigEndian
	}
	return nil
}

// fromUTF16 reads a whole UTF-16 text, as spreadsheets export it.
func fromUTF16(in io.Reader, order binary.ByteOrder) (io.Reader, error) {
	b, err := io.ReadAll(io.LimitReader(in, utf16Max+1))
	if err != nil {
		return nil, err
	}
	if len(b) > utf16Max {
		return nil, fmt.Errorf("a UTF-16 text is read up to %s only", bytesText(utf16Max))
	}
	u := make([]uint16, 0, len(b)/2)
	for i := 2; i+1 < len(b); i += 2 {
		u = append(u, order.Uint16(b[i:]))
	}
	return strings.NewReader(string(utf16.Decode(u))), nil
}
