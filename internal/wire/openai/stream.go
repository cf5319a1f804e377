package openai

import (
	"encoding/json"
	"net/http"
	"strconv"

	"deerbot/internal/wire/script"
)

type streamer struct {
	w    *script.Writer
	head []byte // `{"id":…,"model":…,` shared by all chunks
}

// stream writes the answer s.
func stream(w http.ResponseWriter, r *http.Request, req *script.Request, s *script.Script, withUsage bool) {
	out := script.NewWriter(w, r, s)
	defer out.Close()
	if s.Raw != nil {
		out.Raw(s.Raw)
		return
	}
	head := append([]byte(`{"id":"chatcmpl-`), strconv.Itoa(req.N)...)
	head = append(head, `","object":"chat.completion.chunk","created":`...)
	head = strconv.AppendInt(head, now(), 10)
	head = append(head, `,"model":`...)
	head = append(head, quote(req.Model)...)
	st := &streamer{w: out, head: head}
	st.delta(`{"role":"assistant","content":""}`, "")
	calls := 0
	for _, p := range s.Parts {
		out.Await(p.Wait)
		if p.Call != nil {
			st.call(s, p.Call, calls)
			calls++
			continue
		}
		if p.Reasoning != "" {
			for _, piece := range s.Pieces(p.Reasoning) {
				st.delta(`{"reasoning_content":`+quote(piece)+`}`, "")
			}
		}
		if p.Text != "" {
			for _, piece := range s.Pieces(p.Text) {
				st.delta(`{"content":`+quote(piece)+`}`, "")
			}
		}
	}
	if s.StreamError != nil {
		b, _ := json.Marshal(errorBody(s.StreamError))
		out.Event("", b)
		return
	}
	if s.NoFinish {
		return
	}
	finish := s.Finish
	if finish == "" {
		finish = "stop"
		if calls > 0 {
			finish = "tool_calls"
		}
	}
	st.delta(`{}`, finish)
	if withUsage && !s.NoUsage {
		u := s.Cost(req)
		b := append([]byte(nil), head...)
		b = append(b, `,"choices":[],"usage":{"prompt_tokens":`...)
		b = strconv.AppendInt(b, int64(u.Input), 10)
		b = append(b, `,"completion_tokens":`...)
		b = strconv.AppendInt(b, int64(u.Output), 10)
		b = append(b, `,"total_tokens":`...)
		b = strconv.AppendInt(b, int64(u.Input+u.Output), 10)
		b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(u.Cached), 10)
		out.Event("", append(b, `}}}`...))
	}
	if !s.NoDone {
		out.Event("", []byte("[DONE]"))
	}
}

func (st *streamer) call(s *script.Script, c *script.Call, index int) {
	at := `{"tool_calls":[{"index":` + strconv.Itoa(index) + `,`
	st.delta(at+`"id":`+quote(c.ID)+`,"type":"function","function":{"name":`+quote(c.Name)+`,"arguments":""}}]}`, "")
	for _, piece := range s.Pieces(c.Arguments) {
		st.delta(at+`"function":{"arguments":`+quote(piece)+`}}]}`, "")
	}
}

func (st *streamer) delta(delta, finish string) {
	b := append([]byte(nil), st.head...)
	b = append(b, `,"choices":[{"index":0,"delta":`...)
	b = append(b, delta...)
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		b = append(b, `null`...)
	} else {
		b = append(b, quote(finish)...)
	}
	st.w.Event("", append(b, `}]}`...))
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
