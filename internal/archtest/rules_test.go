package archtest

// rule forbids what it names: no package that matches from may depend, directly or through other packages of this
// module, on one that matches to.
//
// A pattern is an import path, "path/..." for it and everything below, or "path/*" for everything directly below.
// A package that matches except is free; so are imports of test files.
type rule struct {
	from   []string
	to     []string
	except []string // packages that may
	allow  []string // imports that may be made
	direct bool     // only direct imports count
	why    string
}

// chat is everything that knows of chats.
var chat = []string{"deerbot/bot/...", "deerbot/channels/...", "deerbot/commands/...", "deerbot/cards/...", "deerbot/console/..."}

// adapters are the packages that connect a platform, and what belongs to one of them alone.
var adapters = []string{"telegram", "slack", "discord", "lark", "web"}

var rules = append([]rule{
	{
		from: []string{"deerbot/runtime/..."}, to: append(chat, "deerbot/config/...", "deerbot/cmd/..."),
		why: "runtime can be embedded without any chat: runtime.New, Start, Subscribe",
	},
	{
		from: []string{"deerbot/store/..."}, to: []string{"deerbot/..."}, allow: []string{"deerbot/store/...", "deerbot/internal/..."},
		why: "store is a leaf: it knows nobody above it, and what it keeps for others is opaque to it",
	},
	{
		from: []string{"deerbot/cards/..."}, to: []string{"net", "net/http", "os", "os/exec", "database/sql", "log/slog"},
		why: "cards is pure: data in, data out, no I/O",
	},
	{
		from: []string{"deerbot/cards/..."}, to: []string{"deerbot/..."},
		allow: []string{"deerbot/cards/...", "deerbot/runtime/event", "deerbot/store"},
		why:   "cards folds run events into pictures and knows nothing else of the program",
	},
	{
		from: []string{"deerbot/channels/..."}, to: []string{"deerbot/runtime/...", "deerbot/bot/...", "deerbot/commands/...", "deerbot/console/...", "deerbot/config/...", "deerbot/cmd/..."},
		allow: []string{"deerbot/runtime/event"}, // through cards, whose RunView folds events
		why:   "an adapter translates between a platform and the channels contract; bot is the only place where chat meets runtime",
	},
	{
		from: []string{"deerbot/commands/..."}, to: []string{"deerbot/runtime/...", "deerbot/bot/...", "deerbot/channels/*", "deerbot/console/...", "deerbot/config/...", "deerbot/store/*", "deerbot/cmd/..."},
		allow: []string{"deerbot/runtime/model", "deerbot/runtime/event", "deerbot/config/nearest"}, // data types, and a spelling helper
		why:   "a command acts on a Session and knows no platform, run or store",
	},
	{
		from: []string{"deerbot/console/..."}, to: []string{"deerbot/bot/...", "deerbot/channels/...", "deerbot/commands/...", "deerbot/config/...", "deerbot/cmd/..."},
		why: "the HTTP server mounts what it is given and asks nobody for it",
	},
	{
		from: []string{"deerbot/config/..."}, to: []string{"deerbot/..."}, allow: []string{"deerbot/config/..."},
		why: "config is a leaf: the wiring turns it into what each package wants",
	},
	{
		from: []string{"deerbot/..."}, to: []string{"deerbot/config"}, except: []string{"deerbot/cmd/...", "deerbot/config/..."},
		why: "packages take what they need as values of their own; only the wiring reads the configuration",
	},
	{
		from: []string{"deerbot/..."}, to: []string{"deerbot/bot/..."}, except: []string{"deerbot/cmd/...", "deerbot/bot/..."},
		why: "bot conducts; nobody below calls the conductor",
	},
	{
		from: []string{"deerbot/bot/..."}, to: []string{"deerbot/channels/*", "deerbot/store/*", "deerbot/console/...", "deerbot/config/...", "deerbot/runtime/model/*"},
		allow: []string{"deerbot/config/nearest"}, // a spelling helper of commands
		why:   "bot works through contracts; adapters and engines are handed to it",
	},
	{
		from: []string{"deerbot/..."}, to: []string{"deerbot/cmd/..."}, except: []string{"deerbot/cmd/..."},
		why: "the program uses the packages, never the other way round",
	},
	{
		from: []string{"deerbot/..."}, to: []string{"deerbot/internal/wire/..."},
		except: []string{"deerbot/internal/...", "deerbot/runtime/model/modeltest", "deerbot/channels/channeltest", "deerbot/cmd/deerbot/...", "deerbot/features/..."},
		why:    "the wire servers stand in for the platforms in tests and benchmarks; the program does not know them",
	},
	{
		from: []string{"deerbot/internal/wire/..."}, to: []string{"deerbot/..."}, allow: []string{"deerbot/internal/wire/..."},
		why: "a wire server shares no code with what it tests, or both could be wrong alike",
	},
	{
		from: []string{"deerbot/..."}, to: []string{"testing", "pgregory.net/rapid", "github.com/google/go-cmp/...", "go.uber.org/goleak"},
		except: []string{"deerbot/channels/channeltest", "deerbot/store/storetest", "deerbot/runtime/model/modeltest", "deerbot/channels/web/internal/webtest", "deerbot/channels/web/internal/demo"},
		why:    "what only tests need stays out of the binary",
	},
}, append(sdkRules(), adapterRules()...)...)

// sdkRules keep every SDK behind one border.
func sdkRules() []rule {
	var out []rule
	for sdk, home := range map[string][]string{
		"github.com/go-telegram/bot/...":                      {"deerbot/channels/telegram"},
		"github.com/slack-go/slack/...":                       {"deerbot/channels/slack"},
		"github.com/bwmarrin/discordgo/...":                   {"deerbot/channels/discord"},
		"github.com/larksuite/oapi-sdk-go/v3/...":             {"deerbot/channels/lark"},
		"github.com/openai/openai-go/v3/...":                  {"deerbot/runtime/model/openai"},
		"github.com/anthropics/anthropic-sdk-go/...":          {"deerbot/runtime/model/anthropic"},
		"go.etcd.io/bbolt/...":                                {"deerbot/store/boltstore"},
		"github.com/alecthomas/kong/...":                      {"deerbot/cmd/deerbot", "deerbot/internal/wire/cmd/wire"},
		"github.com/fsnotify/fsnotify/...":                    {"deerbot/config"},
		"github.com/yuin/goldmark/...":                        {"deerbot/cards"},
		"github.com/prometheus/client_golang/...":             {"deerbot/console", "deerbot/cmd/deerbot/internal/daemon"},
		"codeberg.org/readeck/go-readability/v2/...":          {"deerbot/runtime/tools/web"},
		"github.com/JohannesKaufmann/html-to-markdown/v2/...": {"deerbot/runtime/tools/web"},
	} {
		out = append(out, rule{
			from: []string{"deerbot/..."}, to: []string{sdk}, except: home, direct: true,
			why: "SDK types stop at the border of the package that adapts them",
		})
	}
	return out
}

// adapterRules keep the adapters apart.
func adapterRules() []rule {
	var out []rule
	for _, a := range adapters {
		for _, b := range adapters {
			if a != b {
				out = append(out, rule{
					from: []string{"deerbot/channels/" + a + "/..."}, to: []string{"deerbot/channels/" + b + "/..."},
					why: "no adapter imports another; what they share is in channels",
				})
			}
		}
	}
	return out
}
