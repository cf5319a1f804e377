package cards

// The form that all dialects share: blocks of inlines, free of syntax. It holds what a reader is meant to see, so raw
// HTML is already text, references are resolved and empty things are gone.

type blockKind uint8

const (
	blockPara blockKind = iota
	blockHeading
	blockQuote
	blockList
	blockCode
	blockTable
	blockRule
)

// block is one block. Which fields count depends on kind.
type block struct {
	kind    blockKind
	snug    bool     // no blank line stood before it
	level   int      // heading: 1 to 6
	inls    []inline // para, heading
	kids    []block  // quote
	items   []item   // list
	ordered bool     // list
	start   int      // list: number of the first item
	loose   bool     // list: blank lines between its items
	lang    string   // code
	text    string   // code, without the last line break; para and heading before their inlines are parsed
	table   *table
}

type item struct {
	kids []block
	task task
	cont bool // the rest of an item that was split: no marker
}

type task uint8

const (
	noTask task = iota
	taskOpen
	taskDone
)

type align uint8

const (
	alignNone align = iota
	alignLeft
	alignCenter
	alignRight
)

type table struct {
	align []align
	head  [][]inline // one cell per column
	rows  [][][]inline

	laid *layout // see aligned
}

type inlineKind uint8

const (
	inText inlineKind = iota
	inBreak
	inCode
	inStrong
	inEm
	inDel
	inUnder
	inLink
	inImage
)

// inline is one inline. Text holds text, code and an image's description; href the target of link and image.
type inline struct {
	kind inlineKind
	text string
	href string
	kids []inline // strong, em, del, under, link
}

// Bounds on what is taken as structure. Beyond them input is text, so that nothing grows faster than it.
const (
	maxDepth   = 32
	maxSource  = 1 << 20 // bytes parsed at a time; more is parsed piece by piece
	maxColumns = 64
	maxTarget  = 2048 // bytes of a link's target
)

func textOf(s string) inline { return inline{kind: inText, text: s} }

func para(in ...inline) block { return block{kind: blockPara, inls: in} }

// plainText is the visible text of inlines without any mark.
func plainText(in []inline) string {
	if len(in) == 1 && in[0].kind == inText {
		return in[0].text
	}
	return string(appendText(nil, in))
}

func appendText(b []byte, in []inline) []byte {
	for i := range in {
		switch in[i].kind {
		case inBreak:
			b = append(b, '\n')
		case inText, inCode, inImage:
			b = append(b, in[i].text...)
		default:
			b = appendText(b, in[i].kids)
		}
	}
	return b
}
