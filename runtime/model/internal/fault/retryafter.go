package fault

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a server may ask for, so that a broken header cannot overflow.
const maxRetryAfter = 30 * 24 * time.Hour

var retryText = regexp.MustCompile(`(?i)(?:try again|retry|retrydelay)[^0-9]{0,24}?([0-9]+(?:\.[0-9]+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|min|minutes?)\b`)

// retryAfter reads how long the server wants to be left alone: the Retry-After-Ms and Retry-After headers (seconds,
// a duration such as 1500ms, or a date), else a phrase like "try again in 20s". 0 means it said nothing.
func retryAfter(h http.Header, text string, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return bounded(ms * float64(time.Millisecond))
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if secs, err := strconv.ParseFloat(v, 64); err == nil {
			return bounded(secs * float64(time.Second))
		}
		if d, err := time.ParseDuration(v); err == nil {
			return bounded(float64(d))
		}
		if at, err := http.ParseTime(v); err == nil {
			return bounded(float64(at.Sub(now)))
		}
	}
	m := retryText.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	switch unit := strings.ToLower(m[2]); {
	case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "milli"):
		return bounded(n * float64(time.Millisecond))
	case strings.HasPrefix(unit, "m"):
		return bounded(n * float64(time.Minute))
	default:
		return bounded(n * float64(time.Second))
	}
}

func bounded(ns float64) time.Duration {
	if math.IsNaN(ns) || ns <= 0 {
		return 0
	}
	return time.Duration(min(ns, float64(maxRetryAfter)))
}
