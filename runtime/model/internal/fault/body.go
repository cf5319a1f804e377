package fault

import (
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// Detail is what an error body says in its own fields.
type Detail struct {
	Status  int // a status inside the body, 0 if none
	Code    string
	Type    string
	Param   string
	Message string
}

var tagPattern = regexp.MustCompile(`(?is)<(?:script|style|head)\b.*?</(?:script|style|head)>|<[^>]*>`)

// ParseBody reads an error body in any of the shapes seen in the wild: OpenAI, Anthropic and Google error objects, a
// string under "error", flat objects (vLLM), "detail" (FastAPI), and pages that are not JSON at all.
func ParseBody(body []byte) Detail {
	var v any
	if json.Unmarshal(body, &v) != nil {
		text := html.UnescapeString(tagPattern.ReplaceAllString(string(body), " "))
		return Detail{Message: strings.Join(strings.Fields(text), " ")}
	}
	return detailOf(v)
}

func detailOf(v any) Detail {
	switch v := v.(type) {
	case string:
		return Detail{Message: v}
	case []any:
		if len(v) > 0 {
			return detailOf(v[0])
		}
	case map[string]any:
		if inner, ok := v["error"]; ok && inner != nil {
			if d := detailOf(inner); d != (Detail{}) {
				return d
			}
		}
		d := Detail{Type: text(v["type"]), Param: text(v["param"])}
		for _, key := range []string{"code", "error_code", "status"} {
			s := text(v[key])
			if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 && d.Status == 0 {
				d.Status = n
			} else if d.Code == "" {
				d.Code = s
			}
		}
		for _, key := range []string{"message", "msg", "error_msg", "error_description", "detail", "details", "errors"} {
			if m := v[key]; m != nil && d.Message == "" {
				d.Message = detailOf(m).Message
			}
		}
		if meta, ok := v["metadata"].(map[string]any); ok { // a gateway's quote of the real provider
			if raw := text(meta["raw"]); raw != "" {
				d.Message = strings.TrimSpace(d.Message + ": " + ParseBody([]byte(raw)).Message)
			}
		}
		if list, ok := v["details"].([]any); ok { // google.rpc.RetryInfo
			for _, item := range list {
				if m, ok := item.(map[string]any); ok && text(m["retryDelay"]) != "" {
					d.Message += " (retry in " + text(m["retryDelay"]) + ")"
				}
			}
		}
		return d
	}
	return Detail{}
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
