package config

import "time"

// Channels configures the platforms.
type Channels struct {
	Telegram Telegram `yaml:"telegram" doc:"Telegram bot."`
	Slack    Slack    `yaml:"slack" doc:"Slack app in Socket Mode."`
	Discord  Discord  `yaml:"discord" doc:"Discord bot."`
	Lark     Lark     `yaml:"lark" doc:"Lark or Feishu app."`
	Web      WebChat  `yaml:"web" doc:"The chat page of this daemon."`
}

// ChannelOptions are the options every channel takes.
type ChannelOptions struct {
	Allow          []string      `yaml:"allow" doc:"User or chat ids that may talk to the bot; empty is everyone the platform lets in. Ids, never names: names can be taken over."`
	Admins         []string      `yaml:"admins" doc:"User ids with operator rights in chats."`
	Groups         string        `yaml:"groups" enum:"mention,all,off" doc:"What makes the bot answer in a group."`
	WhileRunning   string        `yaml:"while_running" enum:"steer,queue,interrupt,reject" doc:"What a plain message does during a run."`
	Stream         string        `yaml:"stream" enum:"auto,edit,off" doc:"How an answer is shown while it is written."`
	Answer         string        `yaml:"answer" enum:"auto,edit,new" doc:"Where the answer goes: auto edits in place when it was quick and sends a new message otherwise."`
	AnswerNewAfter time.Duration `yaml:"answer_new_after" min:"0s" max:"24h" doc:"From when on auto sends a new message."`
	Proxy          Secret        `yaml:"proxy" live:"no" doc:"http, https or socks5 proxy URL."`
}

// Telegram configures the Telegram channel.
type Telegram struct {
	Enabled        Switch `yaml:"enabled" enum:"auto,true,false" live:"no" doc:"On, off, or on when the token is there."`
	Token          Secret `yaml:"token" live:"no" doc:"Bot token. Also TELEGRAM_BOT_TOKEN."`
	APIURL         string `yaml:"api_url" live:"no" doc:"Bot API server."`
	ChannelOptions `yaml:",inline"`
}

// Slack configures the Slack channel.
type Slack struct {
	Enabled        Switch `yaml:"enabled" enum:"auto,true,false" live:"no" doc:"On, off, or on when both tokens are there."`
	BotToken       Secret `yaml:"bot_token" live:"no" doc:"Bot token, xoxb-. Also SLACK_BOT_TOKEN."`
	AppToken       Secret `yaml:"app_token" live:"no" doc:"App-level token, xapp-. Also SLACK_APP_TOKEN."`
	APIURL         string `yaml:"api_url" live:"no" doc:"Web API."`
	ChannelOptions `yaml:",inline"`
}

// Discord configures the Discord channel.
type Discord struct {
	Enabled             Switch `yaml:"enabled" enum:"auto,true,false" live:"no" doc:"On, off, or on when the token is there."`
	Token               Secret `yaml:"token" live:"no" doc:"Bot token. Also DISCORD_BOT_TOKEN."`
	APIURL              string `yaml:"api_url" live:"no" doc:"REST API."`
	ApplicationCommands string `yaml:"application_commands" live:"no" doc:"Where slash commands are registered: global, guild:<id> or off."`
	ChannelOptions      `yaml:",inline"`
}

// Lark configures the Lark channel.
type Lark struct {
	Enabled        Switch `yaml:"enabled" enum:"auto,true,false" live:"no" doc:"On, off, or on when id and secret are there."`
	AppID          string `yaml:"app_id" live:"no" doc:"App id, cli_. Also LARK_APP_ID."`
	AppSecret      Secret `yaml:"app_secret" live:"no" doc:"App secret. Also LARK_APP_SECRET."`
	BaseURL        string `yaml:"base_url" live:"no" doc:"Open platform: https://open.feishu.cn or https://open.larksuite.com."`
	ChannelOptions `yaml:",inline"`
}

// WebChat configures the chat page.
type WebChat struct {
	Enabled        Switch `yaml:"enabled" enum:"auto,true,false" live:"no" doc:"On or off; auto is on."`
	ChannelOptions `yaml:",inline"`
}

// Active reports whether the channel is to be run.
func (c *Telegram) Active() bool { return active(c.Enabled, c.Token.IsSet()) }

// Active reports whether the channel is to be run.
func (c *Slack) Active() bool { return active(c.Enabled, c.BotToken.IsSet() && c.AppToken.IsSet()) }

// Active reports whether the channel is to be run.
func (c *Discord) Active() bool { return active(c.Enabled, c.Token.IsSet()) }

// Active reports whether the channel is to be run.
func (c *Lark) Active() bool { return active(c.Enabled, c.AppID != "" && c.AppSecret.IsSet()) }

// Active reports whether the channel is to be run.
func (c *WebChat) Active() bool { return active(c.Enabled, true) }

func active(s Switch, credentials bool) bool { return s == On || s == Auto && credentials }

// Options returns the common options of a channel by its name, and whether there is such a channel.
func (c *Channels) Options(name string) (*ChannelOptions, bool) {
	switch name {
	case "telegram":
		return &c.Telegram.ChannelOptions, true
	case "slack":
		return &c.Slack.ChannelOptions, true
	case "discord":
		return &c.Discord.ChannelOptions, true
	case "lark":
		return &c.Lark.ChannelOptions, true
	case "web":
		return &c.Web.ChannelOptions, true
	}
	return nil, false
}

// Names lists the channels in the order of the configuration.
func (c *Channels) Names() []string { return []string{"telegram", "slack", "discord", "lark", "web"} }

// Active reports whether the named channel is to be run.
func (c *Channels) Active(name string) bool {
	switch name {
	case "telegram":
		return c.Telegram.Active()
	case "slack":
		return c.Slack.Active()
	case "discord":
		return c.Discord.Active()
	case "lark":
		return c.Lark.Active()
	case "web":
		return c.Web.Active()
	}
	return false
}
