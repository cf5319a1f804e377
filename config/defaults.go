package config

import "time"

// Addresses of the platforms' own servers.
const (
	DefaultTelegramURL = "https://api.telegram.org"
	DefaultSlackURL    = "https://slack.com/api/"
	DefaultDiscordURL  = "https://discord.com"
	DefaultLarkURL     = "https://open.feishu.cn"
)

// Default returns the configuration in which no key is set.
func Default() *Config {
	common := ChannelOptions{
		Groups:         "mention",
		WhileRunning:   "steer",
		Stream:         "auto",
		Answer:         "auto",
		AnswerNewAfter: 20 * time.Second,
	}
	return &Config{
		DataDir:       "./data",
		Locale:        "auto",
		ShutdownGrace: 20 * time.Second,
		Log:           Log{Level: "info", Format: "text"},
		Server:        Server{Listen: "127.0.0.1:8420"},
		Channels: Channels{
			Telegram: Telegram{Enabled: Auto, APIURL: DefaultTelegramURL, ChannelOptions: common},
			Slack:    Slack{Enabled: Auto, APIURL: DefaultSlackURL, ChannelOptions: common},
			Discord:  Discord{Enabled: Auto, APIURL: DefaultDiscordURL, ApplicationCommands: "global", ChannelOptions: common},
			Lark:     Lark{Enabled: Auto, BaseURL: DefaultLarkURL, ChannelOptions: common},
			Web:      WebChat{Enabled: On, ChannelOptions: common},
		},
		Agent: Agent{
			MaxSteps:    200,
			RunTimeout:  2 * time.Hour,
			TokenBudget: 2_000_000,
			Parallel:    4,
			Subagents: Subagents{
				Enabled: true, MaxConcurrent: 3, MaxTotal: 6, Timeout: 30 * time.Minute,
				TokenBudget: 1_000_000, Queue: 64, QueueTimeout: 5 * time.Minute,
			},
			Compaction: Compaction{Enabled: true, Trigger: 0.75, KeepMessages: 20},
			Goals:      Goals{MaxContinuations: 8, MaxNoProgress: 2},
			Recovery:   "resume",
		},
		Sandbox:   Sandbox{Provider: "local", Network: "off", Timeout: 10 * time.Minute},
		Skills:    Skills{Dirs: []string{"./skills"}},
		Memory:    Memory{Enabled: true, MaxFacts: 100, InjectTokens: 2000},
		Limits:    Limits{InboundPerMinute: 30, ConcurrentRuns: 8, AttachmentMB: 25},
		Schedule:  Schedule{TimeZone: "Local", MaxPerChat: 50, Missed: "one"},
		Store:     Store{Driver: "bolt"},
		Stream:    Stream{Driver: "memory"},
		Telemetry: Telemetry{Metrics: true},
	}
}

// DefaultModel returns a model entry in which no key but the name is set.
func DefaultModel(name string) Model {
	return Model{
		Name:            name,
		Provider:        "openai",
		ContextWindow:   128_000,
		MaxOutputTokens: 8192,
		Timeout:         10 * time.Minute,
		StallTimeout:    90 * time.Second,
	}
}
