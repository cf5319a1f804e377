package cards

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"deerbot/cards/phrase"
)

// Footer is the card's last line: elapsed time, steps, tokens and cost, "~" before figures that are estimates.
func Footer(c Card) string {
	var parts []string
	if c.Elapsed > 0 {
		parts = append(parts, elapsedText(c.Elapsed, c.Lang))
	}
	parts = append(parts, figures(c)...)
	if c.Totals.CostUSD > 0 {
		cost := costText(c.Totals.CostUSD)
		if cost[0] == '$' {
			cost = approx(c) + cost
		}
		parts = append(parts, cost)
	}
	return strings.Join(parts, " · ")
}

// OneLine is what is left of a card when the answer went out as a message of its own: how the run ended, and the
// figures.
func OneLine(c Card) string {
	p := sayDoneIn
	switch c.Phase {
	case PhaseCapped:
		p = sayCappedAfter
	case PhaseStopped:
		p = sayStoppedAfter
	case PhaseFailed:
		p = sayFailedAfter
	}
	parts := append([]string{p.In(c.Lang, elapsedText(c.Elapsed, c.Lang))}, figures(c)...)
	return strings.Join(parts, " · ")
}

func figures(c Card) (parts []string) {
	switch n := c.Totals.Steps; {
	case n == 1:
		parts = append(parts, sayOneStep.In(c.Lang))
	case n > 1:
		parts = append(parts, saySteps.In(c.Lang, n))
	}
	if c.Totals.Tokens > 0 {
		parts = append(parts, sayTokens.In(c.Lang, approx(c)+countText(c.Totals.Tokens)))
	}
	return parts
}

func approx(c Card) string {
	if c.Totals.Estimated {
		return "~"
	}
	return ""
}

// countText shortens a count: 950, 1.2k, 182k, 3.4M.
func countText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 9950:
		return trimZero(fmt.Sprintf("%.1f", float64(n)/1e3)) + "k"
	case n < 999_500:
		return strconv.FormatInt((n+500)/1000, 10) + "k"
	}
	return trimZero(fmt.Sprintf("%.1f", float64(n)/1e6)) + "M"
}

func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }

func costText(usd float64) string {
	if usd < 0.01 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}

// elapsedText shows whole seconds: 54s, 4m12s, 1h04m.
func elapsedText(d time.Duration, lang phrase.Lang) string {
	s := int64(d.Round(time.Second) / time.Second)
	h, m := s/3600, s/60%60
	s %= 60
	if lang == phrase.ZH {
		switch {
		case h > 0:
			return fmt.Sprintf("%d 小时 %d 分", h, m)
		case m > 0:
			return fmt.Sprintf("%d 分 %d 秒", m, s)
		}
		return fmt.Sprintf("%d 秒", s)
	}
	switch {
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}
