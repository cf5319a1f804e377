package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"deerbot/runtime/sandbox"
)

const replaceMaxFile = 5 << 20 // bytes

type strReplaceArgs struct {
	Path       string `json:"path" jsonschema:"absolute path of the file"`
	OldStr     string `json:"old_str" jsonschema:"the text to replace, exactly as in the file, with enough around it to be unique"`
	NewStr     string `json:"new_str" jsonschema:"the text to put in its place; may be empty"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence, default false"`
}

func newStrReplace() (Tool, error) {
	return New(Spec{
		Name: "str_replace",
		Description: "Replace a text in a file. old_str must occur exactly once, blanks and line breaks included, unless replace_all is " +
			"set; otherwise nothing is changed and the error says how often and in which lines it occurs, or which line comes nearest. " +
			"The file must have been read first and be at most 5 MiB.",
		Timeout: fileTimeout,
		Line:    lineOf(func(a strReplaceArgs) string { return a.Path }),
	}, strReplace)
}

func strReplace(ctx context.Context, env *Env, args strReplaceArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	switch args.OldStr {
	case "":
		return Result{}, errors.New("old_str is empty; give the text to replace, or use write_file with append=true to add to the end")
	case args.NewStr:
		return Result{}, errors.New("old_str and new_str are the same; nothing was changed")
	}
	b, err := env.Files.ReadFile(args.Path, replaceMaxFile)
	if err != nil {
		return Result{}, missing(env.Files, args.Path, err)
	}
	if bytes.IndexByte(b[:min(len(b), binaryProbe)], 0) >= 0 {
		return Result{}, fmt.Errorf("%s is a binary file; str_replace changes text only", sandbox.Printable(args.Path))
	}
	text, oldStr, newStr := string(b), args.OldStr, args.NewStr
	n := strings.Count(text, oldStr)
	if n == 0 && strings.Contains(text, "\r\n") && !strings.Contains(oldStr, "\r") {
		// The file has the line ends of Windows, which a model does not write.
		oldStr, newStr = strings.ReplaceAll(oldStr, "\n", "\r\n"), strings.ReplaceAll(newStr, "\n", "\r\n")
		n = strings.Count(text, oldStr)
	}
	switch {
	case n == 0:
		return Result{}, fmt.Errorf("old_str does not occur in %s%s; read the file again and copy the text exactly",
			sandbox.Printable(args.Path), nearestLine(text, args.OldStr))
	case n > 1 && !args.ReplaceAll:
		return Result{}, fmt.Errorf("old_str occurs %d times in %s (lines %s); add lines around it until it is unique, or set replace_all",
			n, sandbox.Printable(args.Path), linesOf(text, oldStr, 10))
	}
	where := linesOf(text, oldStr, 10)
	if err := env.Files.WriteFile(args.Path, []byte(strings.ReplaceAll(text, oldStr, newStr))); err != nil {
		return Result{}, err
	}
	times := "once"
	if n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	return Result{Content: fmt.Sprintf("replaced %s in %s, line %s", times, sandbox.Printable(args.Path), where)}, nil
}

// linesOf lists the lines in which s begins, the first max of them.
func linesOf(text, s string, max int) string {
	var out []string
	line, at := 1, 0
	for {
		i := strings.Index(text[at:], s)
		if i < 0 {
			return strings.Join(out, ", ")
		}
		if len(out) == max {
			return strings.Join(out, ", ") + ", …"
		}
		line += strings.Count(text[at:at+i], "\n")
		out = append(out, fmt.Sprint(line))
		line += strings.Count(s, "\n")
		at += i + len(s)
	}
}

// nearestLine describes the line of text that comes nearest to the first line of s that is not blank.
func nearestLine(text, s string) string {
	var want string
	for l := range strings.SplitSeq(s, "\n") {
		if want = strings.Join(strings.Fields(l), " "); want != "" {
			break
		}
	}
	if want == "" || len(want) > 500 {
		return ""
	}
	words := map[string]bool{}
	for w := range strings.FieldsSeq(want) {
		words[w] = true
	}
	best, bestLine, bestScore := 0, "", 0.0
	n := 0
	for l := range strings.SplitSeq(text, "\n") {
		n++
		fields := strings.Fields(l)
		if strings.Join(fields, " ") == want {
			return fmt.Sprintf("; line %d has its first line with other blanks, or what follows differs", n)
		}
		hits := 0
		for _, w := range fields {
			if words[w] {
				hits++
			}
		}
		if score := 2 * float64(hits) / float64(len(fields)+len(words)); score > bestScore {
			best, bestLine, bestScore = n, l, score
		}
	}
	if bestScore < 0.4 {
		return ""
	}
	return fmt.Sprintf("; the nearest is line %d: %s", best, clean(bestLine, 160))
}
