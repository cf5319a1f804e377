package fault

import (
	"net/http"
	"strings"
	"time"

	"deerbot/runtime/model"
)

// Answer is an error as a provider gave it, over HTTP or inside a stream.
type Answer struct {
	Provider, Model string
	Status          int // HTTP status; 200 inside a stream
	Header          http.Header
	Detail          Detail
	Secrets         []string // values that must not show
}

// Error classifies a. What the provider says in fields (code, type) counts first, then the status, and its words last:
// wording changes, and the word "tokens" stands in overflows and in rate limits alike.
func (a Answer) Error(now time.Time) *model.Error {
	d := a.Detail
	status := a.Status
	if status < 400 {
		status = d.Status
	}
	words := strings.ToLower(d.Message)
	e := &model.Error{
		Provider:   a.Provider,
		Model:      a.Model,
		Status:     status,
		Code:       Clean(first(d.Code, d.Type), a.Secrets...),
		Message:    Clean(d.Message, a.Secrets...),
		RetryAfter: retryAfter(a.Header, d.Message, now),
	}
	e.Class = classify(d, status, words, e.RetryAfter > 0)
	if e.Message == "" && status != 0 {
		e.Message = http.StatusText(status)
	}
	refused := e.Class == model.ClassBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnsupportedMediaType
	if refused && aboutImage.MatchString(words) {
		e.Class, e.Image = model.ClassBadRequest, true
	}
	return e
}

func classify(d Detail, status int, words string, hasRetry bool) model.Class {
	if c, ok := byCode(d, words, hasRetry); ok {
		return c
	}
	switch {
	case status == http.StatusTooManyRequests:
		switch {
		case tooLargeForRate.MatchString(words):
			return model.ClassOverflow
		case quotaWords.MatchString(words) && !hasRetry:
			return model.ClassQuota
		case overloadWords.MatchString(words) && !rateWords.MatchString(words):
			return model.ClassOverload
		}
		return model.ClassRate
	case status == http.StatusPaymentRequired:
		return model.ClassQuota
	case status == http.StatusRequestEntityTooLarge:
		return model.ClassOverflow
	case status == http.StatusUnauthorized:
		return model.ClassAuth
	case status == http.StatusForbidden:
		switch {
		case quotaWords.MatchString(words):
			return model.ClassQuota
		case rateWords.MatchString(words):
			return model.ClassRate
		}
		return model.ClassAuth
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return model.ClassOverload
	case status >= 500:
		if overflow(words) {
			return model.ClassOverflow
		}
		return model.ClassOverload
	}
	if c, ok := byWords(words, hasRetry); ok {
		return c
	}
	if status >= 400 {
		return model.ClassBadRequest
	}
	return model.ClassOverload // inside a stream that had begun well: the provider's own trouble
}

// byCode judges by the machine-readable fields. The general ones (invalid_request_error) say nothing here.
func byCode(d Detail, words string, hasRetry bool) (model.Class, bool) {
	for _, s := range []string{d.Code, d.Type} {
		c, ok := codes[strings.ToLower(s)]
		if !ok {
			continue
		}
		switch {
		case c == model.ClassRate && tooLargeForRate.MatchString(words):
			return model.ClassOverflow, true
		case c == model.ClassRate && !hasRetry && quotaWords.MatchString(words):
			return model.ClassQuota, true
		}
		return c, true
	}
	return "", false
}

func byWords(words string, hasRetry bool) (model.Class, bool) {
	switch {
	case overflow(words):
		return model.ClassOverflow, true
	case quotaWords.MatchString(words) && !hasRetry:
		return model.ClassQuota, true
	case rateWords.MatchString(words):
		return model.ClassRate, true
	case authWords.MatchString(words):
		return model.ClassAuth, true
	case overloadWords.MatchString(words):
		return model.ClassOverload, true
	}
	return "", false
}

func overflow(words string) bool {
	return overflowWords.MatchString(words) && !rateWords.MatchString(words)
}

func first(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
