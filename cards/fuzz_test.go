package cards

import (
	"strings"
	"testing"
)

// seeds adds the corpus, the specification's examples and small hostile inputs.
func seeds(f *testing.F) {
	for _, md := range corpus(f) {
		f.Add(md)
	}
	for _, gen := range hostile {
		f.Add(gen(200))
	}
	if ex, err := spec(); err == nil {
		for _, e := range ex {
			f.Add(e.Markdown)
		}
	}
}

func fuzzDialect(f *testing.F, d Dialect) {
	seeds(f)
	f.Fuzz(func(t *testing.T, md string) {
		for i, b := range d.Markdown(md) {
			if _, err := checkBody(d, b); err != nil {
				t.Fatalf("part %d: %v\n%q", i, err, b.Text)
			}
		}
		for _, open := range []bool{true, false} {
			b := d.Card(Card{Phase: PhaseWriting, Title: md, Answer: md, Open: open, Tools: []ToolLine{{Name: md, Args: md}}})
			if _, err := checkBody(d, b); err != nil {
				t.Fatalf("card: %v\n%q", err, b.Text)
			}
		}
	})
}

func FuzzTelegram(f *testing.F) { fuzzDialect(f, Telegram()) }
func FuzzPlain(f *testing.F)    { fuzzDialect(f, Plain()) }
func FuzzWeb(f *testing.F)      { fuzzDialect(f, Web()) }

func FuzzSplit(f *testing.F) {
	seeds(f)
	ds := []*dialect{small(Telegram(), 300), small(Web(), 2000)}
	f.Fuzz(func(t *testing.T, md string) {
		if strings.Contains(md, "|") || len(md) > 20_000 { // a table repeats its head
			return
		}
		for _, d := range ds {
			if d.name == "web" && strings.Count(md, "[")+strings.Count(md, "<")+strings.Count(md, ">")+strings.Count(md, "www.")+strings.Count(md, "://") > 10 {
				continue // targets may be longer than a part
			}
			checkSplitLoose(t, d, md)
		}
	})
}

// checkSplitLoose checks the limit, and the visible text where no link becomes text.
func checkSplitLoose(t *testing.T, d *dialect, md string) {
	whole := letters(visibleOf(t, d, renderWhole(d, md)))
	var got strings.Builder
	for i, b := range d.Markdown(md) {
		if UTF16Len(b.Plain) > d.room.plain {
			t.Fatalf("part %d: %d units of plain text", i, UTF16Len(b.Plain))
		}
		got.WriteString(letters(visibleOf(t, d, b.Text)))
	}
	if strings.ContainsAny(md, "[<:&") || strings.Contains(md, "www.") { // a target may be told twice
		return
	}
	if digitless(got.String()) != digitless(whole) {
		t.Fatalf("text changed\n got %q\nwant %q", got.String(), whole)
	}
}

// digitless drops what an ordered list or a quote writes in each part anew.
func digitless(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || strings.ContainsRune(".)>", r) {
			return -1
		}
		return r
	}, s)
}

func FuzzClose(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, md string) {
		closed := Close(md)
		if len(closed) > 2*len(md)+16 {
			t.Fatalf("%d bytes became %d", len(md), len(closed))
		}
		tg := Telegram().(*dialect)
		for i, b := range tg.Markdown(closed) {
			if _, err := checkBody(tg, b); err != nil {
				t.Fatalf("part %d: %v", i, err)
			}
		}
		lastOf(md, 100)
	})
}
