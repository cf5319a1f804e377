package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Default follows directives in the last user message, one a line, and else repeats what was said:
//
//	!tool NAME {json}     call a tool; several lines are parallel calls
//	!text WORDS           say something
//	!reason WORDS         think something
//	!finish REASON        end with this finish reason
//	!error STATUS WORDS   refuse
//	!fail TYPE WORDS      fail inside the stream, after the rest
//	!delay DURATION       wait that long before each chunk of eight characters
//	!cut N, !stall N      close or go silent after N bytes of the stream
//
// After tool results it reports them in one line each, and follows the directives no more. With tool_choice none it
// calls nothing.
func Default(r *Request) Script {
	if results := r.LastResults(); len(results) > 0 {
		var b strings.Builder
		b.WriteString("The tools answered:\n")
		for _, res := range results {
			head := strings.Join(strings.Fields(res.Text), " ")
			if runes := []rune(head); len(runes) > 120 {
				head = string(runes[:120]) + "…"
			}
			mark := "ok"
			if res.IsError {
				mark = "error"
			}
			fmt.Fprintf(&b, "- %s: %s\n", mark, head)
		}
		return Text(b.String())
	}
	said := r.LastUser()
	var s Script
	directives := 0
	for line := range strings.Lines(said) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		if s.directive(r, word, rest) {
			directives++
		}
	}
	if directives == 0 {
		return Text("You said: " + said)
	}
	return s
}

func (s *Script) directive(r *Request, word, rest string) bool {
	arg, tail, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(arg)
	switch word {
	case "!tool":
		if r.NoTools {
			break
		}
		if tail = strings.TrimSpace(tail); tail == "" {
			tail = "{}"
		}
		id := fmt.Sprintf("call_%d_%d", r.N, s.Calls()+1)
		s.Parts = append(s.Parts, Part{Call: &Call{ID: id, Name: arg, Arguments: tail}})
	case "!text":
		s.Parts = append(s.Parts, Part{Text: rest})
	case "!reason":
		s.Parts = append(s.Parts, Part{Reasoning: rest, Signature: "sig"})
	case "!finish":
		s.Finish = arg
	case "!error":
		s.Error = &Error{Status: n, Message: tail}
	case "!fail":
		s.StreamError = &Error{Type: arg, Message: tail}
	case "!delay":
		s.ChunkDelay, _ = time.ParseDuration(arg)
		s.ChunkSize = 8
	case "!cut":
		s.CutAfter = n
	case "!stall":
		s.StallAfter = n
	default:
		return false
	}
	return true
}
