package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"deerbot/internal/sse"
	"deerbot/runtime/model/internal/call"
	"deerbot/runtime/model/internal/fault"
)

// read feeds the stream to a. Only message_stop ends it well.
func read(c *call.Call, body io.Reader, a *answer) error {
	events := sse.NewReader(body)
	for !a.stopped {
		raw, err := events.Next()
		if errors.Is(err, io.EOF) {
			return c.Cut()
		}
		if err != nil {
			return err
		}
		data := bytes.TrimSpace(raw.Data)
		if len(data) == 0 || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue
		}
		var ev event
		err = json.Unmarshal(data, &ev)
		var wrongType *json.UnmarshalTypeError
		if err != nil && !errors.As(err, &wrongType) {
			return c.Decoding(err, data)
		}
		if ev.Type == "" {
			ev.Type = raw.Type
		}
		failed := len(ev.Error) > 0 && string(ev.Error) != "null"
		if ev.Type == "error" || raw.Type == "error" || failed {
			return c.Refused(200, nil, fault.ParseBody(data))
		}
		a.add(&ev)
		if ev.Type == "message_stop" {
			return nil
		}
		if a.stop != "" {
			c.Finished()
		}
	}
	return nil
}
