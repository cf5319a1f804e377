package model

// Weights of the estimate in quarters of a token. They lean on the high side for prose, because an estimate that is too
// low costs a failed call and one that is too high only an early compaction.
const (
	quartersASCII = 1 // about four characters a token
	quartersOther = 2 // accents, Cyrillic, Arabic, ...: about two characters a token
	quartersCJK   = 4 // about one token a character

	messageTokens = 4    // role and separators
	callTokens    = 8    // the JSON around a tool call or result
	imageTokens   = 1100 // a picture of common size; providers bill 700 to 1600
)

// Estimate is the approximate number of tokens of text. No tokenizer is asked: the vocabularies differ by provider, so
// the figure is meant to be corrected by reported usage.
func Estimate(text string) int64 {
	var quarters int64
	for _, r := range text {
		switch {
		case r < 0x80:
			quarters += quartersASCII
		case r >= 0x2E80 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xF900 && r <= 0xFAFF,
			r >= 0xFE30 && r <= 0xFE4F, r >= 0xFF00 && r <= 0xFFEF, r >= 0x1F000:
			quarters += quartersCJK
		default:
			quarters += quartersOther
		}
	}
	return (quarters + 3) / 4
}

// EstimateMessages is the approximate number of input tokens of msgs.
func EstimateMessages(msgs []Message) int64 {
	var n int64
	for i := range msgs {
		n += messageTokens
		for j := range msgs[i].Parts {
			n += estimatePart(&msgs[i].Parts[j])
		}
	}
	return n
}

// EstimateTools is the approximate number of input tokens of tool specifications.
func EstimateTools(tools []ToolSpec) int64 {
	var n int64
	for _, t := range tools {
		n += callTokens + Estimate(t.Name) + Estimate(t.Description) + Estimate(string(t.Schema))
	}
	return n
}

// EstimateRequest is the approximate number of input tokens of req: messages and tools.
func EstimateRequest(req *Request) int64 {
	return EstimateMessages(req.Messages) + EstimateTools(req.Tools)
}

// EstimateUsage is the usage of an answer whose provider reported none. It is marked as estimated.
func EstimateUsage(req *Request, answer Message) Usage {
	return Usage{
		InputTokens:  EstimateRequest(req),
		OutputTokens: EstimateMessages([]Message{answer}) - messageTokens,
		Estimated:    true,
	}
}

func estimatePart(p *Part) int64 {
	switch p.Kind {
	case PartText, PartReasoning:
		return Estimate(p.Text)
	case PartImage:
		return imageTokens
	case PartToolCall:
		if p.Call != nil {
			return callTokens + Estimate(p.Call.Name) + Estimate(string(p.Call.Arguments))
		}
	case PartToolResult:
		if p.Result != nil {
			return callTokens + Estimate(p.Result.Content)
		}
	}
	return 0
}
