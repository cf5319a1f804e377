package telegram

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts, after entity parsing (core.telegram.org/bots/api#sendmessage, #sendphoto).
const (
	maxText    = 4096
	maxCaption = 1024
)

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

func sortEntities(ents []Entity) []Entity {
	slices.SortStableFunc(ents, func(a, b Entity) int {
		if a.Offset != b.Offset {
			return a.Offset - b.Offset
		}
		return b.Length - a.Length
	})
	return ents
}

// formatted parses text by parse_mode or takes the explicit entities, trims it and checks its length.
func formatted(text, mode, entities string, limit int, tooLong string) (string, []Entity, *apiError) {
	if !utf8.ValidString(text) {
		return "", nil, bad("strings must be encoded in UTF-8")
	}
	var ents []Entity
	switch strings.ToLower(mode) {
	case "":
		if entities != "" {
			if err := json.Unmarshal([]byte(entities), &ents); err != nil {
				return "", nil, bad("can't parse MessageEntity: expected an Array of MessageEntity")
			}
		}
	case "html":
		var err error
		if text, ents, err = parseHTML(text); err != nil {
			return "", nil, bad("can't parse entities: " + err.Error())
		}
	case "markdown", "markdownv2":
		// Not modelled: deerbot never sends it.
		return "", nil, bad("can't parse entities: Markdown is not modelled by this server")
	default:
		return "", nil, bad("unsupported parse_mode")
	}
	text, ents = trim(text, ents)
	if utf16Len(text) > limit {
		return "", nil, bad(tooLong)
	}
	return text, ents, nil
}

// trim cuts white space around the text and moves the entities.
func trim(text string, ents []Entity) (string, []Entity) {
	left := strings.TrimLeftFunc(text, unicode.IsSpace)
	cut := utf16Len(text[:len(text)-len(left)])
	text = strings.TrimRightFunc(left, unicode.IsSpace)
	if len(ents) == 0 {
		return text, ents
	}
	total := utf16Len(text)
	kept := ents[:0]
	for _, e := range ents {
		end := min(e.Offset+e.Length-cut, total)
		e.Offset = max(e.Offset-cut, 0)
		if e.Length = end - e.Offset; e.Length > 0 {
			kept = append(kept, e)
		}
	}
	return text, kept
}

// auto finds what Telegram's clients mark by themselves.
var auto = regexp.MustCompile(`(?:^|[^\w@/])(@[A-Za-z]\w{2,31}|/[A-Za-z0-9_]{1,32}(?:@[A-Za-z]\w{2,31})?|https?://\S+)`)

// autoEntities are the mentions, commands and links of a person's text.
func autoEntities(text string) []Entity {
	if !strings.ContainsAny(text, "@/") {
		return nil
	}
	var ents []Entity
	for _, m := range auto.FindAllStringSubmatchIndex(text, -1) {
		part := text[m[2]:m[3]]
		e := Entity{Type: "url", Offset: utf16Len(text[:m[2]]), Length: utf16Len(part)}
		switch part[0] {
		case '@':
			e.Type = "mention"
		case '/':
			e.Type = "bot_command"
			if next := text[m[3]:]; strings.HasPrefix(next, "/") {
				continue // a path
			}
		}
		ents = append(ents, e)
	}
	return ents
}

// parseKeyboard checks reply_markup.
func parseKeyboard(raw string) (*keyboard, *apiError) {
	if raw == "" {
		return nil, nil
	}
	var k keyboard
	if err := json.Unmarshal([]byte(raw), &k); err != nil {
		return nil, bad("can't parse reply keyboard markup JSON object")
	}
	total := 0
	for _, row := range k.Rows {
		for _, b := range row {
			total++
			switch {
			case b.Text == "":
				return nil, bad("can't parse inline keyboard button: Field \"text\" must be of type String")
			case b.Data == "" && b.URL == "":
				return nil, bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			case len(b.Data) > 64:
				return nil, bad("BUTTON_DATA_INVALID")
			case b.Style != "" && b.Style != "danger" && b.Style != "success" && b.Style != "primary":
				return nil, bad("can't parse inline keyboard button: invalid button style specified")
			}
		}
	}
	if total > 100 {
		return nil, bad("reply markup is too long")
	}
	if total == 0 {
		return nil, nil
	}
	return &k, nil
}
