package slack

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// Limits of Block Kit, docs.slack.dev/reference/block-kit.
const (
	maxBlocks     = 50
	maxSection    = 3000
	maxHeader     = 150
	maxElements   = 25
	maxContext    = 10
	maxButtonText = 75
	maxValue      = 2000
	maxActionID   = 255
	maxBlocksText = 13_200 // of all blocks, measured by others
)

type textObject struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"`
}

type element struct {
	Type     string     `json:"type"`
	Text     textObject `json:"text"`
	ActionID string     `json:"action_id"`
	Value    string     `json:"value"`
	Style    string     `json:"style"`
	URL      string     `json:"url"`
}

type block struct {
	Type     string            `json:"type"`
	BlockID  string            `json:"block_id"`
	Text     *textObject       `json:"text"`
	Elements []json.RawMessage `json:"elements"`
}

func (b *block) buttons() []element {
	var out []element
	for _, raw := range b.Elements {
		var e element
		if json.Unmarshal(raw, &e) == nil && e.Type == "button" {
			out = append(out, e)
		}
	}
	return out
}

func buttonsOf(raw json.RawMessage) []element {
	var blocks []block
	_ = json.Unmarshal(raw, &blocks)
	var out []element
	for i := range blocks {
		out = append(out, blocks[i].buttons()...)
	}
	return out
}

func strict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// CheckBlocks returns what Slack would say about blocks, nil when it takes them.
func CheckBlocks(raw json.RawMessage) []string {
	if e := checkBlocks(raw); e != nil {
		return append([]string{e.code}, e.messages...)
	}
	return nil
}

func checkBlocks(raw json.RawMessage) *apiError {
	var blocks []block
	if err := strict(raw, &blocks); err != nil {
		return &apiError{code: "invalid_blocks_format", messages: []string{err.Error()}}
	}
	if len(blocks) > maxBlocks {
		return invalidBlocks("no more than %d items allowed [json-pointer:/blocks]", maxBlocks)
	}
	total := 0
	actions := map[string]bool{}
	for i, b := range blocks {
		text := func(kinds string, limit int) *apiError {
			switch {
			case b.Text == nil || b.Text.Text == "":
				return invalidBlocks("missing required field: text [json-pointer:/blocks/%d/text]", i)
			case b.Text.Type != "plain_text" && b.Text.Type != kinds:
				return invalidBlocks("unsupported type: %s [json-pointer:/blocks/%d/text]", b.Text.Type, i)
			case utf8.RuneCountInString(b.Text.Text) > limit:
				return invalidBlocks("must be less than %d characters [json-pointer:/blocks/%d/text/text]", limit+1, i)
			}
			total += utf8.RuneCountInString(b.Text.Text)
			return nil
		}
		var e *apiError
		switch b.Type {
		case "section":
			e = text("mrkdwn", maxSection)
		case "header":
			e = text("plain_text", maxHeader)
		case "divider":
		case "context":
			if len(b.Elements) == 0 || len(b.Elements) > maxContext {
				e = invalidBlocks("1 to %d elements [json-pointer:/blocks/%d/elements]", maxContext, i)
			}
		case "actions":
			if len(b.Elements) == 0 || len(b.Elements) > maxElements {
				e = invalidBlocks("1 to %d elements [json-pointer:/blocks/%d/elements]", maxElements, i)
				break
			}
			for j, raw := range b.Elements {
				var k element
				if err := strict(raw, &k); err != nil {
					return invalidBlocks("%v [json-pointer:/blocks/%d/elements/%d]", err, i, j)
				}
				switch {
				case k.Type != "button":
					e = invalidBlocks("unsupported type: %s [json-pointer:/blocks/%d/elements/%d]", k.Type, i, j)
				case k.Text.Type != "plain_text" || k.Text.Text == "":
					e = invalidBlocks("text of a button is plain_text [json-pointer:/blocks/%d/elements/%d/text]", i, j)
				case utf8.RuneCountInString(k.Text.Text) > maxButtonText:
					e = invalidBlocks("must be less than %d characters [json-pointer:/blocks/%d/elements/%d/text/text]", maxButtonText+1, i, j)
				case len(k.Value) > maxValue || len(k.ActionID) > maxActionID:
					e = invalidBlocks("value or action_id is too long [json-pointer:/blocks/%d/elements/%d]", i, j)
				case k.Style != "" && k.Style != "primary" && k.Style != "danger":
					e = invalidBlocks("unsupported style: %s [json-pointer:/blocks/%d/elements/%d/style]", k.Style, i, j)
				case k.ActionID == "" || actions[k.ActionID]:
					e = invalidBlocks("`action_id` \"%s\" already exists for another element [json-pointer:/blocks/%d/elements/%d/action_id]", k.ActionID, i, j)
				}
				actions[k.ActionID] = true
			}
		default:
			e = invalidBlocks("unsupported type: %s [json-pointer:/blocks/%d/type]", b.Type, i)
		}
		if e != nil {
			return e
		}
	}
	if total > maxBlocksText {
		return fail("msg_blocks_too_long")
	}
	return nil
}
