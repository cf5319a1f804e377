package telegram

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"
)

// addressed is a text with what its entities say about whom it is for.
type addressed struct {
	text        string // without the bot's own mentions, trimmed
	mentioned   bool
	otherFirst  bool
	leadingCode bool
}

// addressing reads entities, whose offsets count UTF-16 units. Malformed ones are ignored.
func addressing(text string, ents []models.MessageEntity, me account) addressed {
	a := addressed{text: strings.TrimSpace(text)}
	if len(ents) == 0 {
		return a
	}
	units := utf16.Encode([]rune(text))
	ents = sound(ents, len(units))
	first := true
	var own []models.MessageEntity
	for _, e := range ents {
		span := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		mine, other := false, false
		switch e.Type {
		case models.MessageEntityTypeMention:
			mine = me.username != "" && strings.EqualFold(strings.TrimPrefix(span, "@"), me.username)
			other = !mine
		case models.MessageEntityTypeTextMention:
			mine = e.User != nil && e.User.ID == me.id
			other = !mine
		case models.MessageEntityTypeBotCommand:
			// /command@name is addressed, and stays as it is for the command parser.
			if _, name, ok := strings.Cut(span, "@"); ok {
				if strings.EqualFold(name, me.username) {
					a.mentioned, first = true, false
				} else if first {
					a.otherFirst, first = true, false
				}
			}
			continue
		}
		if mine {
			a.mentioned = true
			own = append(own, e)
		}
		if mine || other {
			a.otherFirst = a.otherFirst || first && other
			first = false
		}
	}
	a.text = strings.TrimSpace(rebuild(units, own, ents))
	a.leadingCode = leadingCode(units, own, ents)
	return a
}

// sound keeps the entities that lie within the text, in order.
func sound(ents []models.MessageEntity, units int) []models.MessageEntity {
	var out []models.MessageEntity
	for _, e := range ents {
		if e.Offset >= 0 && e.Length > 0 && e.Length <= units && e.Offset <= units-e.Length {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Offset < out[j].Offset })
	return out
}

// rebuild is the text without the own mentions, one space of the two around each going with it, and with the targets of
// links that their text hides.
func rebuild(units []uint16, own, ents []models.MessageEntity) string {
	links := make(map[int]string)
	for _, e := range ents {
		if e.Type == models.MessageEntityTypeTextLink && e.URL != "" {
			end := e.Offset + e.Length
			if string(utf16.Decode(units[e.Offset:end])) != e.URL {
				links[end] += " (" + e.URL + ")"
			}
		}
	}
	if len(own) == 0 && len(links) == 0 {
		return string(utf16.Decode(units))
	}
	out := make([]uint16, 0, len(units))
	for i := 0; i <= len(units); {
		if l := links[i]; l != "" {
			out = append(out, utf16.Encode([]rune(l))...)
			delete(links, i)
		}
		if len(own) > 0 && own[0].Offset <= i {
			end := own[0].Offset + own[0].Length
			own = own[1:]
			if end > i {
				i = end
				if len(out) > 0 && blank(out[len(out)-1]) && i < len(units) && blank(units[i]) {
					i++
				}
			}
			continue
		}
		if i < len(units) {
			out = append(out, units[i])
		}
		i++
	}
	return string(utf16.Decode(out))
}

// leadingCode reports whether the text begins, the own mentions aside, inside code or a quote.
func leadingCode(units []uint16, own, ents []models.MessageEntity) bool {
	at := 0
	for at < len(units) {
		if len(own) > 0 && own[0].Offset <= at {
			at = max(at, own[0].Offset+own[0].Length)
			own = own[1:]
			continue
		}
		if !blank(units[at]) {
			break
		}
		at++
	}
	for _, e := range ents {
		switch e.Type {
		case models.MessageEntityTypeCode, models.MessageEntityTypePre, models.MessageEntityTypeBlockquote,
			models.MessageEntityTypeExpandableBlockquote:
			if e.Offset <= at && at < e.Offset+e.Length {
				return true
			}
		}
	}
	return false
}

func blank(u uint16) bool { return unicode.IsSpace(rune(u)) }
