package config

import (
	"path/filepath"
	"time"
)

// Config is the whole configuration. Use [Load] or [Default]; a zero Config is not valid.
type Config struct {
	DataDir       string        `yaml:"data_dir" live:"no" doc:"Where everything is kept: the store, workspaces, files, skills, keys."`
	Locale        string        `yaml:"locale" enum:"auto,en,zh" doc:"Language of the bot's fixed texts. auto decides per chat."`
	ShutdownGrace time.Duration `yaml:"shutdown_grace" min:"0s" max:"10m" doc:"How long running steps may go on after a stop was asked for."`
	Log           Log           `yaml:"log" doc:"The log goes to standard error."`
	Server        Server        `yaml:"server" live:"no" doc:"Web chat, /healthz, /readyz, /metrics."`
	Models        []Model       `yaml:"models" doc:"Language models. The first is the default. Without any, the environment decides: OPENAI_*, ANTHROPIC_*, then Ollama on this machine, then the built-in rehearsal."`
	Channels      Channels      `yaml:"channels" doc:"The chats the bot is in. enabled: auto is on when the credentials are there."`
	Agent         Agent         `yaml:"agent" doc:"How the agent works."`
	Sandbox       Sandbox       `yaml:"sandbox" live:"no" doc:"Where the agent's tools act."`
	Skills        Skills        `yaml:"skills" doc:"Written methods the agent can follow."`
	MCP           MCP           `yaml:"mcp" doc:"Tool servers."`
	Memory        Memory        `yaml:"memory" doc:"What is remembered about people between conversations."`
	Limits        Limits        `yaml:"limits" doc:"Bounds on what people can ask for. 0 is no bound where it says so."`
	Schedule      Schedule      `yaml:"schedule" doc:"Recurring instructions."`
	Store         Store         `yaml:"store" live:"no" doc:"The durable store."`
	Stream        Stream        `yaml:"stream" live:"no" doc:"Where live events of runs pass through."`
	Telemetry     Telemetry     `yaml:"telemetry" live:"no" doc:"Figures about the daemon itself."`

	// File is the file it came from, "" when it was built from the environment alone.
	File string `yaml:"-"`

	lines map[string]int // key path -> line, for the keys that the file sets
}

// IsSet reports whether the file sets the key (such as "agent.max_steps"), whatever its value.
func (c *Config) IsSet(key string) bool { _, ok := c.lines[key]; return ok }

// Line returns the line on which the file sets the key, 0 when it does not.
func (c *Config) Line(key string) int { return c.lines[key] }

// Model finds a model by its configured name.
func (c *Config) Model(name string) (Model, bool) {
	for _, m := range c.Models {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

// StorePath is the file of the bolt store.
func (c *Config) StorePath() string {
	if c.Store.Path != "" {
		return c.Store.Path
	}
	return filepath.Join(c.DataDir, "deerbot.db")
}

// Log configures logging.
type Log struct {
	Level  string `yaml:"level" enum:"debug,info,warn,error" doc:"The least severity that is logged."`
	Format string `yaml:"format" enum:"text,json" live:"no" doc:"text for people, json for machines."`
}

// Server configures the HTTP server.
type Server struct {
	Listen    string `yaml:"listen" doc:"Address and port. Anything but a loopback address needs auth_token."`
	AuthToken Secret `yaml:"auth_token" doc:"What a browser or client must present; required when listen is not loopback."`
}

// Model configures one language model.
type Model struct {
	Name            string            `yaml:"name" doc:"Name people choose it by, unique."`
	Provider        string            `yaml:"provider" enum:"openai,anthropic,rehearsal" doc:"openai is every compatible endpoint; rehearsal is the built-in scripted stand-in."`
	Model           string            `yaml:"model" doc:"The provider's id of the model. Empty: OPENAI_MODEL or ANTHROPIC_MODEL, else a default; of a server of your own, the first model it lists."`
	BaseURL         string            `yaml:"base_url" doc:"Endpoint; empty is the provider's own."`
	APIKey          Secret            `yaml:"api_key" doc:"The provider's key. Empty with an empty base_url: OPENAI_API_KEY or ANTHROPIC_API_KEY."`
	ContextWindow   int               `yaml:"context_window" min:"1024" max:"100000000" doc:"Tokens the model can read at once."`
	MaxOutputTokens int               `yaml:"max_output_tokens" min:"1" max:"10000000" doc:"Tokens of one answer at most."`
	Timeout         time.Duration     `yaml:"timeout" min:"1s" max:"24h" doc:"Bound on one whole call."`
	StallTimeout    time.Duration     `yaml:"stall_timeout" min:"1s" max:"24h" doc:"No byte for this long ends the attempt."`
	Price           Price             `yaml:"price" doc:"USD per million tokens."`
	SupportsVision  bool              `yaml:"supports_vision" doc:"The model reads images."`
	Headers         map[string]Secret `yaml:"headers" doc:"Extra HTTP headers of every call."`
	Extra           map[string]any    `yaml:"extra" doc:"Passed through in the request body."`
}

// Price is in USD per million tokens.
type Price struct {
	Input       float64 `yaml:"input" min:"0" doc:"Input tokens."`
	CachedInput float64 `yaml:"cached_input" min:"0" doc:"Input tokens that the provider had cached."`
	Output      float64 `yaml:"output" min:"0" doc:"Output tokens."`
}

// Agent configures the agent.
type Agent struct {
	Instructions string        `yaml:"instructions" doc:"Added to the system prompt."`
	MaxSteps     int           `yaml:"max_steps" min:"1" max:"100000" doc:"Model calls in one run."`
	RunTimeout   time.Duration `yaml:"run_timeout" min:"1s" doc:"Bound on one run."`
	TokenBudget  int64         `yaml:"token_budget" min:"0" doc:"Tokens of one run, subagents included; 0 is none."`
	CostBudget   float64       `yaml:"cost_budget" min:"0" doc:"USD of one run; 0 is none."`
	Parallel     int           `yaml:"parallel_tools" min:"1" max:"64" doc:"Tool calls of one step that may run side by side."`
	Subagents    Subagents     `yaml:"subagents" doc:"Delegated work."`
	Compaction   Compaction    `yaml:"compaction" doc:"What happens when a conversation outgrows the model's window."`
	Goals        Goals         `yaml:"goals" doc:"Conditions a conversation works towards."`
	Recovery     string        `yaml:"recovery" enum:"resume,ask,interrupt" doc:"What happens to a run that a restart cut: go on, ask with a button, or end it."`
	Tools        Tools         `yaml:"tools" doc:"Which tools the agent has. Names or name:glob patterns."`
	Web          Web           `yaml:"web" doc:"What the agent may reach on the web."`
}

// Subagents configures delegation.
type Subagents struct {
	Enabled       bool             `yaml:"enabled" doc:"The agent may delegate."`
	MaxConcurrent int              `yaml:"max_concurrent" min:"1" max:"1000" doc:"Subagents at work at once, in the whole process."`
	MaxTotal      int              `yaml:"max_total" min:"1" max:"1000" doc:"Subagents of one run."`
	Timeout       time.Duration    `yaml:"timeout" min:"1s" doc:"Bound on one subagent."`
	TokenBudget   int64            `yaml:"token_budget" min:"0" doc:"Tokens of one subagent; 0 is none."`
	Queue         int              `yaml:"queue" min:"0" max:"100000" doc:"Delegations that may wait."`
	QueueTimeout  time.Duration    `yaml:"queue_timeout" min:"0s" doc:"How long one may wait."`
	Custom        []CustomSubagent `yaml:"custom" doc:"Subagents of your own."`
}

// CustomSubagent is a subagent of the operator's.
type CustomSubagent struct {
	Name         string        `yaml:"name" doc:"Name the agent calls it by, unique."`
	Description  string        `yaml:"description" doc:"What it is good for, read by the agent."`
	Instructions string        `yaml:"instructions" doc:"Its system prompt."`
	Tools        []string      `yaml:"tools" doc:"Tools it has; empty is all of the agent's."`
	Skills       []string      `yaml:"skills" doc:"Skills it has; empty is all."`
	Model        string        `yaml:"model" doc:"Configured model it uses; empty is the run's."`
	Timeout      time.Duration `yaml:"timeout" min:"0s" doc:"Bound on one; 0 is that of all subagents."`
	MaxSteps     int           `yaml:"max_steps" min:"0" doc:"Model calls of one; 0 is that of the agent."`
}

// Compaction configures summarising.
type Compaction struct {
	Enabled      bool    `yaml:"enabled" doc:"Summarise older messages when the window fills."`
	Trigger      float64 `yaml:"trigger" min:"0.1" max:"0.95" doc:"Share of the window at which it happens."`
	KeepMessages int     `yaml:"keep_messages" min:"2" max:"10000" doc:"Newest messages kept as they are."`
	Model        string  `yaml:"model" doc:"Configured model that summarises; empty is the run's."`
}

// Goals configures goal following.
type Goals struct {
	MaxContinuations int    `yaml:"max_continuations" min:"0" max:"1000" doc:"Turns the bot adds by itself."`
	MaxNoProgress    int    `yaml:"max_no_progress" min:"1" max:"1000" doc:"Turns without progress before it stands down."`
	Model            string `yaml:"model" doc:"Configured model that judges; empty is the run's."`
}

// Tools says which tools the agent has.
type Tools struct {
	Allow   []string `yaml:"allow" doc:"Only these; empty is all."`
	Deny    []string `yaml:"deny" doc:"None of these."`
	Approve []string `yaml:"approve" doc:"These need a button press."`
}

// Web says what the agent may reach.
type Web struct {
	Allow  []string  `yaml:"allow" doc:"Only these hosts (example.com, *.example.com); empty is every public host."`
	Deny   []string  `yaml:"deny" doc:"None of these hosts."`
	Search WebSearch `yaml:"search" doc:"Web search."`
}

// WebSearch configures the search tool.
type WebSearch struct {
	Provider string `yaml:"provider" enum:",tavily,brave,searxng,duckduckgo" doc:"Search service; empty is none."`
	APIKey   Secret `yaml:"api_key" doc:"The service's key."`
	BaseURL  string `yaml:"base_url" doc:"Endpoint; empty is the service's own."`
}

// Sandbox configures where tools act.
type Sandbox struct {
	Provider string        `yaml:"provider" enum:"local,bwrap,docker" doc:"local keeps to the workspace's files; bwrap and docker isolate."`
	Shell    bool          `yaml:"shell" doc:"The agent may run shell commands. With provider local this is no boundary."`
	Network  string        `yaml:"network" enum:"off,on" doc:"Network of shell commands."`
	Timeout  time.Duration `yaml:"timeout" min:"1s" doc:"Bound on one command."`
	CPU      float64       `yaml:"cpu" min:"0" doc:"Processors a command may use; 0 is no bound."`
	Memory   Size          `yaml:"memory" doc:"Memory a command may use, such as 512MB; empty is no bound."`
}

// Skills configures skills.
type Skills struct {
	Dirs     []string `yaml:"dirs" doc:"Directories with skills."`
	Disabled []string `yaml:"disabled" doc:"Names of skills that are off."`
}

// MCP configures tool servers.
type MCP struct {
	Servers map[string]MCPServer `yaml:"servers" doc:"Servers by name, in the shape of the mcpServers block of other clients."`
}

// MCPServer is one tool server: a command to start or a URL to call.
type MCPServer struct {
	Type     string            `yaml:"type" enum:",stdio,http,sse,streamable-http" doc:"Transport; empty is told from command or url."`
	Command  string            `yaml:"command" doc:"Program of a local server."`
	Args     []string          `yaml:"args" doc:"Its arguments."`
	Env      map[string]Secret `yaml:"env" doc:"Its environment."`
	Cwd      string            `yaml:"cwd" doc:"Its working directory."`
	URL      string            `yaml:"url" doc:"Address of a remote server."`
	Headers  map[string]Secret `yaml:"headers" doc:"HTTP headers for it."`
	Disabled bool              `yaml:"disabled" doc:"Do not use this server."`
	Other    map[string]any    `yaml:",rest" doc:"Keys of other clients, kept but not used."`
}

// Memory configures what is remembered.
type Memory struct {
	Enabled      bool `yaml:"enabled" doc:"Remember durable facts about people."`
	MaxFacts     int  `yaml:"max_facts" min:"1" max:"100000" doc:"Facts kept per person."`
	InjectTokens int  `yaml:"inject_tokens" min:"0" max:"1000000" doc:"Tokens of memory given to the model."`
}

// Limits bounds what people can ask for.
type Limits struct {
	InboundPerMinute   int     `yaml:"inbound_per_minute" min:"1" max:"1000000" doc:"Messages of one chat in a minute; more wait their turn."`
	ConcurrentRuns     int     `yaml:"concurrent_runs" min:"1" max:"100000" doc:"Runs at work at once; more wait, with their position shown."`
	DailyTokensPerUser int64   `yaml:"daily_tokens_per_user" min:"0" doc:"Tokens of one person in a day; 0 is no bound."`
	DailyCostPerUser   float64 `yaml:"daily_cost_per_user" min:"0" doc:"USD of one person in a day; 0 is no bound."`
	AttachmentMB       int     `yaml:"attachment_mb" min:"0" max:"4096" doc:"Largest file taken from a chat, in MiB."`
}

// Schedule configures recurring instructions.
type Schedule struct {
	TimeZone   string `yaml:"time_zone" doc:"Zone of times in schedules: Local or a name such as Europe/Berlin."`
	MaxPerChat int    `yaml:"max_per_chat" min:"0" max:"100000" doc:"Schedules of one chat."`
	Missed     string `yaml:"missed" enum:"none,one,all" doc:"Which fires missed in a downtime are made up for."`
}

// Store configures the durable store.
type Store struct {
	Driver string `yaml:"driver" enum:"bolt,postgres" doc:"bolt is a file under data_dir."`
	Path   string `yaml:"path" doc:"File of the bolt store; empty is deerbot.db under data_dir."`
	DSN    Secret `yaml:"dsn" doc:"Postgres connection string."`
}

// Stream configures the event bridge.
type Stream struct {
	Driver string `yaml:"driver" enum:"memory,redis" doc:"memory is this process alone."`
	URL    Secret `yaml:"url" doc:"Redis address."`
}

// Telemetry configures figures about the daemon.
type Telemetry struct {
	OTLPEndpoint string `yaml:"otlp_endpoint" doc:"OpenTelemetry collector; empty is none."`
	Metrics      bool   `yaml:"metrics" doc:"Serve /metrics."`
}
