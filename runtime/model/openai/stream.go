package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"deerbot/internal/sse"
	"deerbot/runtime/model/internal/call"
	"deerbot/runtime/model/internal/fault"
)

// read feeds the stream to a. done tells that the end mark came. A stream is complete with its end mark or with a finish
// reason; any other end is an error.
func (m *Model) read(c *call.Call, body io.Reader, a *answer) (done bool, err error) {
	events := sse.NewReader(body)
	for !a.stopped {
		ev, err := events.Next()
		if err != nil {
			if a.finish == "" || c.Interrupted() {
				if errors.Is(err, io.EOF) {
					return false, c.Cut()
				}
				return false, err
			}
			break // only figures are missing
		}
		data := bytes.TrimSpace(ev.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			if a.empty() {
				return true, c.Protocol("the answer is empty")
			}
			done = true
			break
		}
		if len(data) == 0 {
			continue
		}
		ch, err := decode(data)
		if err != nil {
			return false, c.Decoding(err, data)
		}
		if ev.Type == "error" || ch.failed() {
			return false, c.Refused(200, nil, fault.ParseBody(data))
		}
		a.add(&ch)
		if a.finish != "" {
			if err := failedFinish(c, a.finish); err != nil {
				return false, err
			}
			c.Finished()
		}
	}
	a.close()
	return done, nil
}

// failedFinish is the error that some servers put into the finish reason.
func failedFinish(c *call.Call, reason string) error {
	switch strings.ToLower(reason) {
	case "error", "insufficient_system_resource":
		return c.Refused(200, nil, fault.Detail{Code: "overloaded", Message: "finish reason " + reason})
	case "network_error", "abort":
		return c.Cut()
	}
	return nil
}
